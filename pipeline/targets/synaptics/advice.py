"""What is advised, in a metafile's words."""

from __future__ import annotations

import re

import yaml

from pipeline.digest import Json
from pipeline.project.sections import Calibration
from pipeline.targets.synaptics.keys import METHODS

FED = "`means`, `scale` and `format` under `inputs:`"
ALGORITHMS = {ours: theirs for theirs, ours in METHODS.items()}
# Hints in our words, and what a metafile has for them.
HINTS: tuple[tuple[str, str], ...] = (
    (
        r"write  method: load",
        "leave `dataset` out: a model that is quantized keeps its own scales",
    ),
    (r"choose kl, max or max_percentile .*", "give `dataset` under `quantization:`"),
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
    (r"add  data: .*", "give `dataset` under `quantization:`"),
)
SAID = ("types", "cpu", "npu")  # keys of `quantization` that a metafile has words for


def line(section: str, said: Json, own: Json) -> str:
    """The keys of the metafile that change; nothing where it has no words for a change."""
    changed = {key for key in {*said, *own} if said.get(key) != own.get(key)}
    if section == "calibration":
        return _algorithm(said) if changed == {"method"} else ""
    if not changed or not changed.issubset(SAID):
        return ""
    found: dict[str, Json] = {}
    if changed & {"cpu", "npu"}:
        found["delegate"] = _delegates(said)
    if "types" in changed:
        found["quantization"] = {"data_type": _data_type(said["types"])}
    return _flow(found)


def hint(text: str) -> str:
    """The hint of an error, as a metafile has it."""
    for ours, theirs in HINTS:
        if re.fullmatch(ours, text):
            return re.sub(ours, theirs, text)
    return text


def search(calibration: Calibration) -> str:
    """Of methods."""
    return "" if calibration.method == "modelwise" else _algorithm({"method": "modelwise"})


def _algorithm(said: Json) -> str:
    name = ALGORITHMS.get(said["method"])
    return "" if name is None else _flow({"quantization": {"algorithm": name}})


def _delegates(said: Json) -> Json:
    """The later of a metafile beats the earlier: single layers come last."""
    units = [(name, unit) for unit in ("cpu", "npu") for name in said.get(unit, ())]
    ordered = sorted(units, key=lambda rule: not rule[0].endswith("..."))
    return {"*": "npu", **dict(ordered)}


def _data_type(types: Json) -> Json:
    """One type, or a map in which a name that comes twice stands last."""
    found: dict[str, Json] = {}
    for rules in types if isinstance(types, (list, tuple)) else [types]:
        for name, kind in rules.items():
            found.pop(name, None)
            found[name] = kind
    return found["*"] if set(found) == {"*"} else found


def _flow(data: Json) -> str:
    return str(yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**6)).strip()[
        1:-1
    ]
