"""The native document → hb_mapper's YAML and samples.

Samples are values as in training, before mean and scale: raw float32 in the model's layout.
"""

from __future__ import annotations

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.dialects.drobotics.keys import NORMS
from npumake.dialects.handover import (
    ClosedTool,
    CommandNames,
    HandoverDocument,
    HandoverRequest,
    omitted_keys,
    with_values,
)
from npumake.dialects.openexplorer.groups import (
    MODELS,
    SEARCHES,
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
)
from npumake.digest import Json
from npumake.project.sections import Calibration

NORM_TYPES = {steps: name for name, steps in NORMS.items()}
FLOATS = ("float16", "float32")  # a node of such a type runs on the CPU
SAMPLES: dict[str, Json] = {"cal_data_type": "float32", "preprocess_on": False}
COMPILER_KEYS = (
    *("compile_mode", "optimize_level", "core_num", "input_source", "max_time_per_fc"),
    *("jobs", "debug"),
)


def render(request: HandoverRequest) -> HandoverDocument:
    """hb_mapper's YAML. Raises ProjectError for a setting that it needs and cannot express."""
    samples = {**folders(request), **(SAMPLES if request.folders else {})}
    if request.vendor_document is not None:
        changes = {"model_parameters": model_files(request), "calibration_parameters": samples}
        return with_values(request.vendor_document, changes)
    document = {
        "model_parameters": {**model_group(request), **node_info(request, on_cpu=FLOATS)},
        "input_parameters": {**input_group(request), **_norms(request), **_layouts(request)},
        "calibration_parameters": calibration_group(request) | samples,
        "compiler_parameters": compiler_group(request, *COMPILER_KEYS, hardest="O3"),
    }
    quantization = omitted_keys(request.sections.quantization, *carried_keys(request))
    return HandoverDocument(
        _without_none(document), (*omissions(request), *_grids(request), *quantization)
    )


def _grids(request: HandoverRequest) -> list[str]:
    """The settings of `calibration:` for which hb_mapper has no key."""
    calibration, default = request.calibration, Calibration()
    lines = ["calibration.symmetric: false"] if calibration.symmetric is False else []
    if calibration.method == "kl" and calibration.bins != default.bins:
        lines.append(f"calibration.bins: {calibration.bins}")
    if calibration.method == "modelwise" and calibration.modelwise != default.modelwise:
        lines.append(f"calibration.modelwise; {SEARCHES}")
    return lines


def _norms(request: HandoverRequest) -> dict[str, Json]:
    """norm_type, mean_value and scale_value, with one item per input; `None` skips a step."""
    sections = [model_input.section for model_input in request.inputs.values()]
    steps = [(np.any(section.mean), np.any(np.not_equal(section.scale, 1))) for section in sections]
    group = {"norm_type": ";".join(NORM_TYPES[bool(mean), bool(scale)] for mean, scale in steps)}
    if any(mean for mean, _ in steps):
        means = (
            section.mean if used else None
            for section, (used, _) in zip(sections, steps, strict=True)
        )
        group["mean_value"] = ";".join("None" if mean is None else numbers(mean) for mean in means)
    if any(scale for _, scale in steps):
        scales = (
            section.scale if used else None
            for section, (_, used) in zip(sections, steps, strict=True)
        )
        group["scale_value"] = ";".join("None" if s is None else numbers(s) for s in scales)
    return group


def _layouts(request: HandoverRequest) -> dict[str, Json]:
    sections = [model_input.section for model_input in request.inputs.values()]
    if all(section.fed_layout is None for section in sections):
        return {}
    return {
        "input_layout_rt": ";".join(section.fed_layout or section.layout for section in sections)
    }


def _without_none(document: dict[str, dict[str, Json]]) -> Json:
    return {
        group: {key: value for key, value in keys.items() if value is not None}
        for group, keys in document.items()
    }


def _sample(values: np.ndarray, model_input: ModelInput) -> np.ndarray:
    return values.astype("<f4")


def _command(files: CommandNames) -> tuple[str, ...]:
    kind = "onnx" if files.weights is None else "caffe"
    return ("hb_mapper", "makertbin", "--config", HB_MAPPER.config, "--model-type", kind)


HB_MAPPER = ClosedTool(
    "hb_mapper",
    "hb_mapper",
    "hb_mapper.yaml",
    MODELS,
    render,
    _command,
    "{prefix}.bin",
    _sample,
    ".bin",
)
