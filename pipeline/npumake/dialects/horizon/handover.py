"""Our words → hb_compile's YAML, and its samples: .npy of what the float model computes with, mean
and scale applied, since the tool calibrates the model before it puts these in front."""

from __future__ import annotations

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.normalized import normalized
from npumake.dialects.handover import Handed, HandoverRequest, Tool, renamed, unsaid
from npumake.dialects.horizon.keys import FED_LAYOUTS
from npumake.dialects.horizon.quant_config import quant_config
from npumake.dialects.openexplorer.groups import (
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
from npumake.digest import Json
from npumake.errors import ProjectError, Route

CORRECTED = "quantization.bias_correction"  # of quant_config, whoever asks for it
CONFIG = "hb_compile.yaml"
COMPILED = ("compile_mode", "optimize_level", "core_num", "max_time_per_fc", "jobs", "debug")


def written(request: HandoverRequest) -> Handed:
    """Raises ProjectError for what hb_compile has no word for and cannot do without."""
    if request.said is not None:
        changed = {"model_parameters": named(request), "calibration_parameters": folders(request)}
        return renamed(request.said, changed)
    calibration = {key: x for key, x in calibration_group(request).items() if x is not None}
    if config := quant_config(request):
        calibration["quant_config"] = config
    document = {
        "model_parameters": {**model_group(request), **node_info(request)},
        "input_parameters": {**input_group(request), **_norms(request)},
        "calibration_parameters": calibration,
        "compiler_parameters": compiler_group(request, *COMPILED, hardest="O2"),
    }
    carried = (*handled(request), "bias_correction")
    quantization = unsaid(request.sections.quantization, *carried)
    missing = [omission for omission in left_out(request) if not omission.startswith(CORRECTED)]
    return Handed(document, (*missing, *_layouts(request), *quantization))


def _norms(request: HandoverRequest) -> dict[str, Json]:
    found = {}
    for key, usual in (("mean", 0), ("scale", 1)):
        values = [_norm(one, key, usual) for one in request.inputs.values()]
        if set(values) != {"None"}:
            found[f"{key}_value"] = ";".join(values)
    return found


def _norm(given: ModelInput, key: str, usual: float) -> str:
    value = getattr(given.section, key)
    if not np.any(np.not_equal(value, usual)):
        return "None"
    if types(given)[0] == "featuremap":
        message = f"`{key}` of a feature map: hb_compile has none"
        hint = "leave it out, and feed what the model computes with"
        raise ProjectError(message, Route(f"inputs.{given.name}.{key}"), hint)
    return numbers(value)


def _layouts(request: HandoverRequest) -> list[str]:
    """Of pictures: hb_compile knows one layout for each type."""
    found = []
    for one in request.inputs.values():
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
