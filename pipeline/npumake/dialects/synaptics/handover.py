"""Our words → SyNAP's metafile, and its samples: .npy of what the float model computes with.

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
    CommandNames,
    Handed,
    HandoverRequest,
    Tool,
    is_pattern,
    unsaid,
)
from npumake.dialects.synaptics.keys import AUTO, METHODS, TARGETS
from npumake.digest import Json, plain
from npumake.errors import ProjectError, Route
from npumake.project.names import entries
from npumake.project.sections import Calibration, Modelwise, PerChannel

MODELS = (".onnx", ".tflite", ".pb", ".prototxt")
ALGORITHMS = {ours: theirs for theirs, ours in METHODS.items()}
SOCS = {chip: soc for soc, chip in reversed(TARGETS.items())}  # the first name of each
CONFIG = "meta.yaml"
HANDLED = ("types", "scheme", "mode", "cpu", "npu")
SECRETS = "security: the keys are yours to name; give the metafile your security file"


def written(request: HandoverRequest) -> Handed:
    """Raises ProjectError for what a metafile has no word for and cannot do without."""
    if request.said is not None:
        return _renamed(request)
    sections, quantization = request.sections, _quantization(request)
    document = {
        **_delegates(request),
        "inputs": [_input(request, one) for one in request.inputs.values()],
        **({"outputs": [{"name": name} for name in sections.model.outputs]}
           if sections.model.outputs else {}),
        **({"quantization": quantization} if quantization else {}),
    }  # fmt: skip
    names = (*sections.quantization.cpu, *sections.quantization.npu)
    patterns = [f"the pattern `{x}`" for x in names if is_pattern(x) and not x.endswith("...")]
    offsets = [
        f"inputs.{one.name}.offset: SyNAP feeds 0..255"
        for one in request.inputs.values()
        if one.form.offset
    ]
    whole = quantization and not sections.quantization.scheme and request.target.weights.per_channel
    grids = ["the scale per channel of weights: its default scheme has one per tensor"]
    policies = ["security.outputs"] if sections.security.outputs else []
    return Handed(
        document,
        (
            *_calibration(request),
            *patterns,
            *offsets,
            *(grids if whole else ()),
            *policies,
            *unsaid(sections.quantization, *HANDLED),
        ),
    )


def _calibration(request: HandoverRequest) -> list[str]:
    """What of `calibration` a metafile has no key for."""
    said, usual = request.calibration, Calibration()
    method = said.method
    searches = method not in (*ALGORITHMS, "load", "skip")
    if method == "modelwise" and plain(said.modelwise) != plain(Modelwise(**AUTO)):
        searches = True
    found = [f"calibration.method: {method}; the tool takes `auto`"] if searches else []
    of_method = {"kl": ("bins",), "moving_average": ("momentum",)}.get(method, ())
    for key in ("symmetric", "per_channel", *of_method):
        if getattr(said, key) != getattr(usual, key):
            found.append(f"calibration.{key}: {plain(getattr(said, key))}")
    switches = request.decisions.found if request.decisions else ()
    return [*found, *(f"quantization.{name}: the search has found it to help" for name in switches)]


def _renamed(request: HandoverRequest) -> Handed:
    document = copy.deepcopy(request.said)
    if request.folders and document.get("quantization"):
        document["quantization"]["dataset"] = _datasets(request)
    secrets = document.pop("security", None)
    return Handed(document, (SECRETS,) if secrets else ())


def _input(request: HandoverRequest, given: ModelInput) -> Json:
    said, kinds = given.section, ("rgb", "bgr")
    policies = request.sections.security.inputs
    key = entries(policies, request.inputs).get(given.name)
    steps = said.preprocess
    return {
        "name": given.name,
        "shape": list(given.form.shape),
        **({"means": plain(said.mean)} if np.any(said.mean) else {}),
        **({"scale": 1.0 / _one(said.scale, given.name)} if _scaled(said.scale) else {}),
        **({"format": said.type} if said.type in kinds else {}),
        **({"security": policies[key]} if key else {}),
        **({"preprocess": {k: x for k, x in plain(steps).items() if x}} if steps else {}),
    }


def _scaled(scale: PerChannel) -> bool:
    return bool(np.any(np.not_equal(scale, 1)))


def _one(scale: PerChannel, name: str) -> float:
    """SyNAP has one scale for all channels. Raises ProjectError where they differ."""
    found = set(np.atleast_1d(scale).tolist())
    if len(found) != 1:
        message = "a scale per channel: SyNAP has one for all"
        raise ProjectError(
            message, Route(f"inputs.{name}.scale"), "work it into the model's weights"
        )
    return float(found.pop())


def _quantization(request: HandoverRequest) -> dict[str, Json]:
    """Nothing for a model that brings its scales, or stays float."""
    said, method = request.sections.quantization, request.calibration.method
    if method == "load":
        return {}
    rules = [dict(one) for one in said.types] if isinstance(said.types, tuple) else [said.types]
    types = {name: kind for one in rules for name, kind in one.items()}
    usual = request.target.activations.dtype
    data_type: Json = types.get("*", usual) if set(types) <= {"*"} else {"*": usual, **types}
    return {
        "data_type": data_type,
        **({"scheme": said.scheme} if said.scheme else {}),
        **({"mode": said.mode} if said.mode != "standard" else {}),
        "algorithm": ALGORITHMS.get(method, "auto"),
        "dataset": _datasets(request) if request.folders else ["random"] * len(request.inputs),
    }


def _datasets(request: HandoverRequest) -> list[str]:
    folders = request.folders or {}
    return [f"{CALIBRATION}/{folders[name]}/*.npy" for name in folders]


def _delegates(request: HandoverRequest) -> dict[str, Json]:
    said = request.sections.quantization
    units = [(name, unit) for unit in ("cpu", "npu") for name in getattr(said, unit)]
    found = {name: unit for name, unit in units if not is_pattern(name.removesuffix("..."))}
    if not found:
        return {}
    # A later rule wins there; here the name that says more does.
    ordered = sorted(found.items(), key=lambda rule: not rule[0].endswith("..."))
    return {"delegate": {"*": "npu", **dict(ordered)}}


def _sample(values: np.ndarray, given: ModelInput) -> np.ndarray:
    return normalized(values, given.section.mean, given.section.scale, given.section.layout)


def _command(files: CommandNames) -> tuple[str, ...]:
    weights = () if files.weights is None else ("--weights", files.weights)
    named = ("--model", files.model, *weights, "--meta", CONFIG)
    profiling = ("--profiling",) if files.profiling else ()
    chip = ("--target", SOCS[files.chip])
    return ("synap", "convert", *named, *chip, *profiling, "--out-dir", PRODUCTS)


SYNAP = Tool("synap", "synap", CONFIG, MODELS, written, _command, "model.synap", _sample)
