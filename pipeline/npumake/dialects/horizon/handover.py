"""The native document → hb_compile's YAML and samples.

Samples are .npy files with mean and scale applied: the tool calibrates the model before it inserts
these into the model.
"""

from __future__ import annotations

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.normalized import normalized
from npumake.dialects.handover import (
    ClosedTool,
    HandoverDocument,
    HandoverRequest,
    omitted_keys,
    with_values,
)
from npumake.dialects.horizon.keys import FED_LAYOUTS
from npumake.dialects.horizon.quant_config import quant_config
from npumake.dialects.openexplorer.groups import (
    MODELS,
    calibration_group,
    carried_keys,
    compiler_group,
    folders,
    input_group,
    model_files,
    model_group,
    node_info,
    numbers,
    omissions,
    types,
)
from npumake.digest import Json
from npumake.errors import ProjectError, Route

BIAS_CORRECTION = "quantization.bias_correction"  # quant_config holds it
CONFIG = "hb_compile.yaml"
COMPILER_KEYS = ("compile_mode", "optimize_level", "core_num", "max_time_per_fc", "jobs", "debug")


def render(request: HandoverRequest) -> HandoverDocument:
    """hb_compile's YAML. Raises ProjectError for a setting that it needs and cannot express."""
    if request.vendor_document is not None:
        changes = {
            "model_parameters": model_files(request),
            "calibration_parameters": folders(request),
        }
        return with_values(request.vendor_document, changes)
    calibration = {key: x for key, x in calibration_group(request).items() if x is not None}
    if config := quant_config(request):
        calibration["quant_config"] = config
    document = {
        "model_parameters": {**model_group(request), **node_info(request)},
        "input_parameters": {**input_group(request), **_norms(request)},
        "calibration_parameters": calibration,
        "compiler_parameters": compiler_group(request, *COMPILER_KEYS, hardest="O2"),
    }
    carried = (*carried_keys(request), "bias_correction")
    quantization = omitted_keys(request.sections.quantization, *carried)
    missing = [
        omission for omission in omissions(request) if not omission.startswith(BIAS_CORRECTION)
    ]
    return HandoverDocument(document, (*missing, *_layouts(request), *quantization))


def _norms(request: HandoverRequest) -> dict[str, Json]:
    group = {}
    for key, neutral in (("mean", 0), ("scale", 1)):
        values = [_norm(model_input, key, neutral) for model_input in request.inputs.values()]
        if set(values) != {"None"}:
            group[f"{key}_value"] = ";".join(values)
    return group


def _norm(model_input: ModelInput, key: str, neutral: float) -> str:
    value = getattr(model_input.section, key)
    if not np.any(np.not_equal(value, neutral)):
        return "None"
    if types(model_input)[0] == "featuremap":
        message = f"`{key}` of a feature map: hb_compile has none"
        hint = "leave it out, and feed the values that the model computes with"
        raise ProjectError(message, Route(f"inputs.{model_input.name}.{key}"), hint)
    return numbers(value)


def _layouts(request: HandoverRequest) -> list[str]:
    """Omissions for images: hb_compile supports one layout per type."""
    lines = []
    for model_input in request.inputs.values():
        runtime_type = types(model_input)[1]
        layout = model_input.section.fed_layout or model_input.section.layout
        if runtime_type in FED_LAYOUTS and FED_LAYOUTS[runtime_type] != layout:
            lines.append(
                f"inputs.{model_input.name}: {runtime_type} is fed as {FED_LAYOUTS[runtime_type]}, "
                f"not {layout}"
            )
    return lines


def _sample(values: np.ndarray, model_input: ModelInput) -> np.ndarray:
    return normalized(
        values, model_input.section.mean, model_input.section.scale, model_input.section.layout
    )


HB_COMPILE = ClosedTool(
    "hb_compile",
    "hb_compile",
    CONFIG,
    MODELS,
    render,
    lambda _: ("hb_compile", "-c", CONFIG),
    "{prefix}.hbm",
    _sample,
)
