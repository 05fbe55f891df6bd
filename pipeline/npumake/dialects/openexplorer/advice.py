"""Advice and messages in the keys of hb_mapper and hb_compile.

    a method           calibration_type: kl
    types of nodes     node_info: {conv1: {InputType: int16, OutputType: int16}}
    nodes on the CPU   run_on_cpu: conv1;conv2

A line replaces the value of its key, so it repeats the settings of other nodes. No advice is given
that these keys cannot express.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from npumake.dialects.openexplorer.node_requests import INTEGERS, inserted_name
from npumake.dialects.phrases import ALLOWANCES, Phrases
from npumake.digest import Json
from npumake.project.sections import Calibration

INPUT_SETTINGS = (
    "`input_type_train`, `input_layout_train`, `mean_value` and `scale_value` under "
    "`input_parameters`"
)
METHODS = ("kl", "max")
TRANSLATABLE_KEYS = frozenset({"types", "layers", "cpu"})
PATTERNS = ("*", "...", "->")
# A pattern for our text, and its replacement in the keys of both tools.
PHRASES: Phrases = (
    *ALLOWANCES,
    (r"`quantization\.npu` lists it", "`run_on_bpu` or `node_info` lists it"),
    (r"`quantization\.types`", "`node_info`"),
    (r"`quantization: \{cpu: \[(.*?)\]\}`", r"`run_on_cpu: \1`"),
    (r"see `layout` and `type` under `inputs:`", "see `input_layout_train`, `input_type_train`"),
    (r"see `transforms` and `normalized` under `data:`", "see `scale_value`"),
    (r"set `dtype` under `data:`", "set `cal_data_type`"),
    (
        r"`offset: 128` under `inputs:` if these are 8-bit images",
        "`input_type_train` is rgb, bgr or gray for pictures of 8 bits",
    ),
    (r"`stacked: true` under `data:` if .*", "write one sample in a file"),
    (r"`transforms: .*` make an image fit", "`preprocess_on: True` makes a picture fit"),
    (
        r"fix it under `inputs:`, for example  (\S+): \{shape: \[.*?\]\}",
        r"give `input_shape` of `\1`, for example 1x3x224x224",
    ),
    (r"give every input a fixed shape under `inputs:`", "give `input_shape` of every input"),
    (
        r"name it in the project, under `model:`:  weights: .*",
        "save the model with its weights in one file: onnx.save(onnx.load(...), 'model.onnx')",
    ),
    (r"write  weights: \S+  under `model:`", "give `caffe_model`"),
    (r"freeze what never changes, by `inputs: .*?`, or ", ""),
    (r"by `model\.outputs`", "by `output_nodes`"),
    (r"leave `batch` out(, or .*)?", "leave `input_batch` out"),
    (r"add  (\S+): \{files: \.\.\.\}", r"`cal_data_dir` needs a folder for `\1`"),
    (r"add  data: .*", "give `cal_data_dir`"),
    (r"add  transforms: \[\{rgb2yuv444: .*", "save the samples as yuv444"),
    (r"leave `mean` and `scale` to `inputs:` alone", "save the pixels themselves, 0..255"),
    (r"`mean: 127\.5` and `scale: 0\.00784314`", "`mean_value: 127.5`, `scale_value: 0.00784314`"),
    (r"`scale` lacks", "`scale_value` lacks"),
    (r"`scale` cannot be 0", "`scale_value` cannot be 0"),
    (r"`mean` is meant", "`mean_value` is meant"),
    (
        r"samples of 0\.\.1 need `values: 0\.\.255`, or a `scale`",
        "for samples of 0..1 a `scale_value`",
    ),
    (r"the other `layout` fits", "the other `input_layout_train` fits"),
    (r"see `normalized`", "see `scale_value`"),
    (r"write  method: (\w+)", r"write  calibration_type: \1"),
    (
        r"choose kl, max or max_percentile to find its thresholds",
        "write  calibration_type: max  or kl, and `cal_data_dir`",
    ),
    (r"`(types|layers)` would ignore them", "`node_info` would ignore them"),
    (r"`outputs` would ignore them", "`optimization` would ignore them"),
    (r"paths start at the project's directory", "paths start at the folder of the YAML file"),
)


def line(section: str, advised: Json, own: Json) -> str:
    """The keys to change, as YAML; empty if the file has no key for the change."""
    changed = {key for key in {*advised, *own} if advised.get(key) != own.get(key)}
    if section == "calibration":
        return _method(advised["method"]) if changed == {"method"} else ""
    if not changed or not changed <= TRANSLATABLE_KEYS:
        return ""
    keys: dict[str, Json] = {}
    if "cpu" in changed:
        keys["run_on_cpu"] = ";".join(map(inserted_name, advised["cpu"]))
    if changed & {"types", "layers"}:
        nodes = _nodes(advised, own)
        if nodes is None:
            return ""
        keys["node_info"] = nodes
    return "" if any(_is_pattern(name) for name in advised.get("cpu", ())) else _flow(keys)


def search(calibration: Calibration) -> str:
    """The key that starts a search of methods; empty if it is already set."""
    return "" if calibration.method in ("default", "modelwise") else "calibration_type: default"


def _method(name: str) -> str:
    """The key of a method. `max` needs a percentile of 1.0; a lower one in the file would clip."""
    whole = {"max_percentile": 1.0} if name == "max" else {}
    return _flow({"calibration_type": name, **whole}) if name in METHODS else ""


def _nodes(advised: Json, own: Json) -> dict[str, Json] | None:
    """node_info; None if it cannot express the change. A later rule overrides an earlier one."""
    rules, before = _rules(advised.get("types")), _rules(own.get("types"))
    if rules[: len(before)] != before:
        return None
    nodes: dict[str, dict[str, str]] = {}
    for name, layer in advised.get("layers", {}).items():
        if layer != own.get("layers", {}).get(name) or not _is_pattern(name):
            nodes.setdefault(name, {}).update(_fields(layer))
    for rule in rules[len(before) :]:
        for name, kind in rule.items():
            nodes.setdefault(name, {}).update(InputType=kind, OutputType=kind)
    kinds = {kind for fields in nodes.values() for kind in fields.values()}
    if any(map(_is_pattern, nodes)) or not kinds <= {*INTEGERS}:
        return None
    return {inserted_name(name): fields for name, fields in nodes.items()}


def _rules(types: Json) -> list[Mapping[str, str]]:
    listed = types if isinstance(types, list | tuple) else [types or {}]
    return [dict(rule) for rule in listed if rule]


def _fields(layer: Json) -> dict[str, str]:
    return dict(_places(layer))


def _places(layer: Json) -> Iterator[tuple[str, str]]:
    """InputType, InputType0 and OutputType of a node."""
    if kind := layer.get("input"):
        yield "InputType", kind
    for index, kind in enumerate(layer.get("inputs") or ()):
        if kind:
            yield f"InputType{index}", kind
    if kind := layer.get("output"):
        yield "OutputType", kind


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in PATTERNS)


def _flow(data: Json) -> str:
    text = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**6)
    return str(text).strip()[1:-1]
