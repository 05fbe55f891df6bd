"""Advice and messages in the keys of SyNAP's metafile."""

from __future__ import annotations

import yaml

from npumake.dialects.phrases import ALLOWANCES, Phrases
from npumake.dialects.synaptics.keys import METHODS
from npumake.digest import Json
from npumake.project.sections import Calibration

INPUT_SETTINGS = "`means`, `scale` and `format` under `inputs:`"
ALGORITHMS = {method: algorithm for algorithm, method in METHODS.items()}
# A pattern for our text, and its replacement in the keys of a metafile.
PHRASES: Phrases = (
    *ALLOWANCES,
    (
        r"write  method: \w+",
        "leave `dataset` out: a model that is quantized keeps its own scales",
    ),
    (r"choose kl, max or max_percentile .*", "give `dataset` under `quantization:`"),
    (r"`quantization\.npu` lists it", "`delegate` lists it"),
    (r"`quantization\.types`", "`data_type`"),
    (r"`quantization: \{cpu: \[(.*?)\]\}`", r"`delegate: {'*': npu, \1: cpu}`"),
    (r"`(types|layers|outputs)` would ignore them", "`data_type` would ignore them"),
    (r"freeze what never changes, by `inputs: .*?`, or ", ""),
    (r"by `model\.outputs`", "by `outputs`"),
    (
        r"give every input a fixed shape under `inputs:`",
        "give every input its `name` and `shape` under `inputs:`",
    ),
    (
        r"name it in the project, under `model:`:  weights: .*",
        "save the model with its weights in one file: onnx.save(onnx.load(...), 'model.onnx')",
    ),
    (r"write  weights: \S+  under `model:`", "give `--weights`"),
    (r"leave `mean` and `scale` to `inputs:` alone", "leave `means` and `scale` out"),
    (r"`mean: 127\.5` and `scale: 0\.00784314`", "`means: 127.5`, `scale: 127.5`"),
    (r"the other `layout` fits", "save it in the order of the model's axes"),
    (r"see `normalized`", "see `scale`"),
    (r"set `dtype` under `data:` to the type of raw numbers", "a dataset is .npy or pictures"),
    (
        r"fix it under `inputs:`, for example  (\S+): \{shape: (.*)\}",
        r"write, for example  inputs: [{name: \1, shape: \2}]",
    ),
    (r"paths start at the project's directory", "paths start at the metafile's folder"),
    (
        r"see `layout` and `type` under `inputs:`",
        "see `shape`, `format` and `preprocess` under `inputs:`",
    ),
    (r"`transforms: \[resize\]`.*", "save it in the shape of the input"),
    (r"`stacked: true` under `data:`.*", "save every sample in a file of its own"),
    (r"`offset: 128` under `inputs:`.*", "save it as float32, normalized: x.astype(...)"),
    (r"add  (\S+): \{files: \.\.\.\}", "`dataset` has one item for each input, here for `\\1`"),
    (r"add  transforms: \[\{rgb2yuv444: .*", "save the samples as the model was trained on them"),
    (r"leave `batch` out.*", "a metafile's model takes one sample"),
    (r"add  data: .*", "give `dataset` under `quantization:`"),
)
TRANSLATABLE_KEYS = ("types", "cpu", "npu")  # keys of `quantization:` that a metafile can express


def line(section: str, advised: Json, own: Json) -> str:
    """The keys to change, as YAML; empty if a metafile has no key for the change."""
    changed = {key for key in {*advised, *own} if advised.get(key) != own.get(key)}
    if section == "calibration":
        return _algorithm(advised) if changed == {"method"} else ""
    if not changed or not changed.issubset(TRANSLATABLE_KEYS):
        return ""
    keys: dict[str, Json] = {}
    if changed & {"cpu", "npu"}:
        keys["delegate"] = _delegates(advised)
    if "types" in changed:
        keys["quantization"] = {"data_type": _data_type(advised["types"])}
    return _flow(keys)


def search(calibration: Calibration) -> str:
    """The key that starts a search of methods; empty if it is already set."""
    return "" if calibration.method == "modelwise" else _algorithm({"method": "modelwise"})


def _algorithm(calibration: Json) -> str:
    name = ALGORITHMS.get(calibration["method"])
    return "" if name is None else _flow({"quantization": {"algorithm": name}})


def _delegates(quantization: Json) -> Json:
    """`delegate` as a map. A later entry overrides an earlier one, so single layers come last."""
    units = [(name, unit) for unit in ("cpu", "npu") for name in quantization.get(unit, ())]
    ordered = sorted(units, key=lambda rule: not rule[0].endswith("..."))
    return {"*": "npu", **dict(ordered)}


def _data_type(types: Json) -> Json:
    """One type, or a map of types by name; a repeated name moves to the end."""
    merged: dict[str, Json] = {}
    for rules in types if isinstance(types, (list, tuple)) else [types]:
        for name, kind in rules.items():
            merged.pop(name, None)
            merged[name] = kind
    return merged["*"] if set(merged) == {"*"} else merged


def _flow(data: Json) -> str:
    return str(yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**6)).strip()[
        1:-1
    ]
