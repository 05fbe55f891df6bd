"""The native document → SyNAP's metafile and samples: .npy of normalized values.

norm = (in - means) / scale = (x - mean) * (1 / scale)
"""

from __future__ import annotations

import copy

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.normalized import normalized
from npumake.dialects.handover import (
    CALIBRATION,
    PRODUCTS,
    ClosedTool,
    CommandNames,
    HandoverDocument,
    HandoverRequest,
    is_pattern,
    omitted_keys,
)
from npumake.dialects.synaptics.keys import AUTO, METHODS, TARGETS
from npumake.digest import Json, plain
from npumake.errors import ProjectError, Route
from npumake.project.names import entries
from npumake.project.sections import Calibration, Modelwise, PerChannel

MODELS = (".onnx", ".tflite", ".pb", ".prototxt")
ALGORITHMS = {method: algorithm for algorithm, method in METHODS.items()}
SOCS = {chip: soc for soc, chip in reversed(TARGETS.items())}  # the first name of each chip
CONFIG = "meta.yaml"
CARRIED_KEYS = ("types", "scheme", "mode", "cpu", "npu")
SECRETS = "security: keys are left out; name your security file in the metafile"


def render(request: HandoverRequest) -> HandoverDocument:
    """The metafile. Raises ProjectError for a setting that it needs and cannot express."""
    if request.vendor_document is not None:
        return _own_document(request)
    sections, quantization = request.sections, _quantization(request)
    document = {
        **_delegates(request),
        "inputs": [_input(request, model_input) for model_input in request.inputs.values()],
        **({"outputs": [{"name": name} for name in sections.model.outputs]}
           if sections.model.outputs else {}),
        **({"quantization": quantization} if quantization else {}),
    }  # fmt: skip
    names = (*sections.quantization.cpu, *sections.quantization.npu)
    patterns = [f"the pattern `{x}`" for x in names if is_pattern(x) and not x.endswith("...")]
    offsets = [
        f"inputs.{model_input.name}.offset: SyNAP feeds 0..255"
        for model_input in request.inputs.values()
        if model_input.form.offset
    ]
    whole = quantization and not sections.quantization.scheme and request.target.weights.per_channel
    grids = ["the scale per channel of weights: its default scheme has one per tensor"]
    policies = ["security.outputs"] if sections.security.outputs else []
    return HandoverDocument(
        document,
        (
            *_calibration(request),
            *patterns,
            *offsets,
            *(grids if whole else ()),
            *policies,
            *omitted_keys(sections.quantization, *CARRIED_KEYS),
        ),
    )


def _calibration(request: HandoverRequest) -> list[str]:
    """The settings of `calibration:` for which a metafile has no key."""
    calibration, default = request.calibration, Calibration()
    method = calibration.method
    searches = method not in (*ALGORITHMS, "load", "skip")
    if method == "modelwise" and plain(calibration.modelwise) != plain(Modelwise(**AUTO)):
        searches = True
    omissions = [f"calibration.method: {method}; the tool takes `auto`"] if searches else []
    of_method = {"kl": ("bins",), "moving_average": ("momentum",)}.get(method, ())
    for key in ("symmetric", "per_channel", *of_method):
        if getattr(calibration, key) != getattr(default, key):
            omissions.append(f"calibration.{key}: {plain(getattr(calibration, key))}")
    switches = request.decisions.extra_switches if request.decisions else ()
    return [
        *omissions,
        *(f"quantization.{name}: selected by the search" for name in switches),
    ]


def _own_document(request: HandoverRequest) -> HandoverDocument:
    document = copy.deepcopy(request.vendor_document)
    if request.folders and document.get("quantization"):
        document["quantization"]["dataset"] = _datasets(request)
    secrets = document.pop("security", None)
    return HandoverDocument(document, (SECRETS,) if secrets else ())


def _input(request: HandoverRequest, model_input: ModelInput) -> Json:
    section, kinds = model_input.section, ("rgb", "bgr")
    policies = request.sections.security.inputs
    key = entries(policies, request.inputs).get(model_input.name)
    steps = section.preprocess
    return {
        "name": model_input.name,
        "shape": list(model_input.form.shape),
        **({"means": plain(section.mean)} if np.any(section.mean) else {}),
        **(
            {"scale": 1.0 / _single_scale(section.scale, model_input.name)}
            if _has_scale(section.scale)
            else {}
        ),
        **({"format": section.type} if section.type in kinds else {}),
        **({"security": policies[key]} if key else {}),
        **({"preprocess": {k: x for k, x in plain(steps).items() if x}} if steps else {}),
    }


def _has_scale(scale: PerChannel) -> bool:
    return bool(np.any(np.not_equal(scale, 1)))


def _single_scale(scale: PerChannel, name: str) -> float:
    """The scale of all channels: SyNAP has a single one. Raises ProjectError if they differ."""
    scales = set(np.atleast_1d(scale).tolist())
    if len(scales) != 1:
        message = "a scale per channel: SyNAP has one for all"
        raise ProjectError(
            message, Route(f"inputs.{name}.scale"), "multiply the model's weights by it"
        )
    return float(scales.pop())


def _quantization(request: HandoverRequest) -> dict[str, Json]:
    """`quantization`; empty for a model with its own scales."""
    quantization, method = request.sections.quantization, request.calibration.method
    if method == "load":
        return {}
    rules = (
        [dict(rule) for rule in quantization.types]
        if isinstance(quantization.types, tuple)
        else [quantization.types]
    )
    types = {name: kind for rule in rules for name, kind in rule.items()}
    default_type = request.target.activations.dtype
    data_type: Json = (
        types.get("*", default_type) if set(types) <= {"*"} else {"*": default_type, **types}
    )
    return {
        "data_type": data_type,
        **({"scheme": quantization.scheme} if quantization.scheme else {}),
        **({"mode": quantization.mode} if quantization.mode != "standard" else {}),
        "algorithm": ALGORITHMS.get(method, "auto"),
        "dataset": _datasets(request) if request.folders else ["random"] * len(request.inputs),
    }


def _datasets(request: HandoverRequest) -> list[str]:
    folders = request.folders or {}
    return [f"{CALIBRATION}/{folders[name]}/*.npy" for name in folders]


def _delegates(request: HandoverRequest) -> dict[str, Json]:
    quantization = request.sections.quantization
    units = [(name, unit) for unit in ("cpu", "npu") for name in getattr(quantization, unit)]
    by_name = {name: unit for name, unit in units if not is_pattern(name.removesuffix("..."))}
    if not by_name:
        return {}
    # In a metafile a later rule wins; in a native document the more specific name wins.
    ordered = sorted(by_name.items(), key=lambda rule: not rule[0].endswith("..."))
    return {"delegate": {"*": "npu", **dict(ordered)}}


def _sample(values: np.ndarray, model_input: ModelInput) -> np.ndarray:
    return normalized(
        values, model_input.section.mean, model_input.section.scale, model_input.section.layout
    )


def _command(files: CommandNames) -> tuple[str, ...]:
    weights = () if files.weights is None else ("--weights", files.weights)
    model_arguments = ("--model", files.model, *weights, "--meta", CONFIG)
    profiling = ("--profiling",) if files.profiling else ()
    chip = ("--target", SOCS[files.chip])
    return ("synap", "convert", *model_arguments, *chip, *profiling, "--out-dir", PRODUCTS)


SYNAP = ClosedTool("synap", "synap", CONFIG, MODELS, render, _command, "model.synap", _sample)
