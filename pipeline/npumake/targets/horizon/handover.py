"""Our words → hb_compile's YAML, and its samples: .npy of what the float model computes with, mean
and scale applied, since the tool calibrates the model before it puts these in front."""

from __future__ import annotations

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.normalized import normalized
from npumake.digest import Json
from npumake.errors import ProjectError, Route
from npumake.targets.groups import (
    MODELS,
    calibration_group,
    compiler_group,
    folders,
    handled,
    input_group,
    left_out,
    model_group,
    named,
    node_info,
    numbers,
    types,
)
from npumake.targets.handover import Handed, HandoverRequest, Tool, renamed, unsaid
from npumake.targets.horizon.keys import FED_LAYOUTS
from npumake.targets.horizon.quant_config import quant_config

CORRECTED = "quantization.bias_correction"  # of quant_config, whoever asks for it
CONFIG = "hb_compile.yaml"
COMPILED = ("compile_mode", "optimize_level", "core_num", "max_time_per_fc", "jobs", "debug")


def written(asked: HandoverRequest) -> Handed:
    """Raises ProjectError for what hb_compile has no word for and cannot do without."""
    if asked.said is not None:
        changed = {"model_parameters": named(asked), "calibration_parameters": folders(asked)}
        return renamed(asked.said, changed)
    calibration = {key: x for key, x in calibration_group(asked).items() if x is not None}
    if config := quant_config(asked):
        calibration["quant_config"] = config
    document = {
        "model_parameters": {**model_group(asked), **node_info(asked)},
        "input_parameters": {**input_group(asked), **_norms(asked)},
        "calibration_parameters": calibration,
        "compiler_parameters": compiler_group(asked, *COMPILED, hardest="O2"),
    }
    carried = (*handled(asked), "bias_correction")
    quantization = unsaid(asked.sections.quantization, *carried)
    missing = [what for what in left_out(asked) if not what.startswith(CORRECTED)]
    return Handed(document, (*missing, *_layouts(asked), *quantization))


def _norms(asked: HandoverRequest) -> dict[str, Json]:
    found = {}
    for key, usual in (("mean", 0), ("scale", 1)):
        values = [_norm(one, key, usual) for one in asked.inputs.values()]
        if set(values) != {"None"}:
            found[f"{key}_value"] = ";".join(values)
    return found


def _norm(given: ModelInput, key: str, usual: float) -> str:
    value = getattr(given.section, key)
    if not np.any(np.not_equal(value, usual)):
        return "None"
    if types(given)[0] == "featuremap":
        what = f"`{key}` of a feature map: hb_compile has none"
        hint = "leave it out, and feed what the model computes with"
        raise ProjectError(what, Route(f"inputs.{given.name}.{key}"), hint)
    return numbers(value)


def _layouts(asked: HandoverRequest) -> list[str]:
    """Of pictures: hb_compile knows one layout for each type."""
    found = []
    for one in asked.inputs.values():
        fed = types(one)[1]
        layout = one.section.fed_layout or one.section.layout
        if fed in FED_LAYOUTS and FED_LAYOUTS[fed] != layout:
            found.append(f"inputs.{one.name}: {fed} is fed as {FED_LAYOUTS[fed]}, not {layout}")
    return found


def _sample(values: np.ndarray, given: ModelInput) -> np.ndarray:
    return normalized(values, given.section.mean, given.section.scale, given.section.layout)


HB_COMPILE = Tool(
    "hb_compile",
    "hb_compile",
    CONFIG,
    MODELS,
    written,
    lambda _: ("hb_compile", "-c", CONFIG),
    "{prefix}.hbm",
    _sample,
)
