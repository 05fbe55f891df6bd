"""Our words → hb_mapper's YAML, and its samples: what the model was trained on, before mean and
scale, as bare float32 in the layout of the model."""

from __future__ import annotations

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.dialects.drobotics.keys import NORMS
from npumake.dialects.handover import CommandNames, Handed, HandoverRequest, Tool, renamed, unsaid
from npumake.dialects.openexplorer.groups import (
    MODELS,
    SEARCHES,
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
)
from npumake.digest import Json
from npumake.project.sections import Calibration

NORM_TYPES = {asked: name for name, asked in NORMS.items()}
FLOATS = ("float16", "float32")  # of a whole node: it runs on the CPU
SAMPLES: dict[str, Json] = {"cal_data_type": "float32", "preprocess_on": False}
COMPILED = (
    *("compile_mode", "optimize_level", "core_num", "input_source", "max_time_per_fc"),
    *("jobs", "debug"),
)


def written(request: HandoverRequest) -> Handed:
    """Raises ProjectError for what hb_mapper has no word for and cannot do without."""
    samples = {**folders(request), **(SAMPLES if request.folders else {})}
    if request.said is not None:
        changed = {"model_parameters": named(request), "calibration_parameters": samples}
        return renamed(request.said, changed)
    document = {
        "model_parameters": {**model_group(request), **node_info(request, on_cpu=FLOATS)},
        "input_parameters": {**input_group(request), **_norms(request), **_layouts(request)},
        "calibration_parameters": calibration_group(request) | samples,
        "compiler_parameters": compiler_group(request, *COMPILED, hardest="O3"),
    }
    quantization = unsaid(request.sections.quantization, *handled(request))
    return Handed(_without_none(document), (*left_out(request), *_grids(request), *quantization))


def _grids(request: HandoverRequest) -> list[str]:
    """What of `calibration` hb_mapper has no key for."""
    said, usual = request.calibration, Calibration()
    found = ["calibration.symmetric: false"] if said.symmetric is False else []
    if said.method == "kl" and said.bins != usual.bins:
        found.append(f"calibration.bins: {said.bins}")
    if said.method == "modelwise" and said.modelwise != usual.modelwise:
        found.append(f"calibration.modelwise; {SEARCHES}")
    return found


def _norms(request: HandoverRequest) -> dict[str, Json]:
    """One item per input; `None` where it has no such step."""
    said = [one.section for one in request.inputs.values()]
    steps = [(np.any(one.mean), np.any(np.not_equal(one.scale, 1))) for one in said]
    found = {"norm_type": ";".join(NORM_TYPES[bool(mean), bool(scale)] for mean, scale in steps)}
    if any(mean for mean, _ in steps):
        means = zip(said, steps, strict=True)
        found["mean_value"] = ";".join(numbers(x.mean) if is_[0] else "None" for x, is_ in means)
    if any(scale for _, scale in steps):
        scales = zip(said, steps, strict=True)
        found["scale_value"] = ";".join(numbers(x.scale) if is_[1] else "None" for x, is_ in scales)
    return found


def _layouts(request: HandoverRequest) -> dict[str, Json]:
    said = [one.section for one in request.inputs.values()]
    if all(one.fed_layout is None for one in said):
        return {}
    return {"input_layout_rt": ";".join(one.fed_layout or one.layout for one in said)}


def _without_none(document: dict[str, dict[str, Json]]) -> Json:
    return {
        group: {key: value for key, value in keys.items() if value is not None}
        for group, keys in document.items()
    }


def _sample(values: np.ndarray, given: ModelInput) -> np.ndarray:
    return values.astype("<f4")


def _command(files: CommandNames) -> tuple[str, ...]:
    kind = "onnx" if files.weights is None else "caffe"
    return ("hb_mapper", "makertbin", "--config", HB_MAPPER.config, "--model-type", kind)


HB_MAPPER = Tool(
    "hb_mapper",
    "hb_mapper",
    "hb_mapper.yaml",
    MODELS,
    written,
    _command,
    "{prefix}.bin",
    _sample,
    ".bin",
)
