"""The native document → the groups that the YAML of hb_mapper and hb_compile share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from npumake import digest
from npumake.data.input_samples import ModelInput
from npumake.dialects.handover import (
    CALIBRATION,
    PRODUCTS,
    HandoverRequest,
    NodeDecision,
    is_pattern,
)
from npumake.digest import Json
from npumake.errors import ProjectError, Route
from npumake.project.sections import PerChannel

MODELS = (".onnx", ".prototxt")
METHODS = {
    **{name: name for name in ("default", "kl", "load", "max", "mix", "skip")},
    **dict.fromkeys(("standard", "max_percentile"), "max"),
    "modelwise": "default",
}
SEARCHES = "the tool searches on its own"
PLAIN = {1: "gray", 3: "rgb"}  # channels → type of an 8-bit input without a type


def model_files(request: HandoverRequest) -> dict[str, Json]:
    """The keys of `model_parameters` with files and folders."""
    if request.weights is None:
        model: dict[str, Json] = {"onnx_model": request.model}
    else:
        model = {"prototxt": request.model, "caffe_model": request.weights}
    return {**model, "working_dir": PRODUCTS, "output_model_file_prefix": request.prefix}


def model_group(request: HandoverRequest) -> dict[str, Json]:
    model, compile = request.sections.model, request.sections.compile
    types, nodes = ((*model.remove_types, *compile.remove_types), model.remove_nodes)
    lists = {
        "output_nodes": model.outputs,
        "remove_node_type": tuple(dict.fromkeys(types)),
        "remove_node_name": tuple(dict.fromkeys((*nodes, *compile.remove_nodes))),
    }
    return {
        **model_files(request),
        "march": request.target.march,
        **{key: ";".join(names) for key, names in lists.items() if names},
    }


def input_group(request: HandoverRequest) -> dict[str, Json]:
    """`input_parameters` except mean and scale. Raises ProjectError for an input that the tools
    do not support."""
    inputs = request.inputs.values()
    type_pairs = [types(model_input) for model_input in inputs]
    ranges = ["bt601_video" if model_input.form.video else "regular" for model_input in inputs]
    group = {
        "input_name": _list(model_input.name for model_input in inputs),
        "input_type_train": _list(kind for kind, _ in type_pairs),
        "input_layout_train": _list(model_input.section.layout for model_input in inputs),
        "input_type_rt": _list(runtime_type for _, runtime_type in type_pairs),
        "input_shape": _list("x".join(map(str, model_input.form.shape)) for model_input in inputs),
        **({"input_space_and_range": _list(ranges)} if set(ranges) != {"regular"} else {}),
    }
    batch = max(model_input.section.batch for model_input in inputs)
    return group | ({"input_batch": batch} if batch > 1 else {})


def types(model_input: ModelInput) -> tuple[str, str]:
    """(input_type_train, input_type_rt) of an input. Raises ProjectError."""
    section, route = model_input.section, f"inputs.{model_input.name}"
    if section.preprocess is not None:
        message = "a picture in planes: this vendor's tool has no key for it"
        raise ProjectError(message, Route(f"{route}.preprocess"), "write `fed_type: nv12`")
    trained: str = section.type or "featuremap"
    if trained == "featuremap" and model_input.form.offset:
        sizes = dict(zip(section.layout, model_input.form.shape, strict=False))
        if len(model_input.form.shape) != 4 or sizes["C"] not in PLAIN:
            message = (
                "8-bit values that are not a picture: this vendor's tool feeds those as floats"
            )
            raise ProjectError(message, Route(f"{route}.offset"), "write `offset: 0`")
        trained = PLAIN[sizes["C"]]
    elif trained != "featuremap" and not model_input.form.offset:
        message = (
            "a picture without an offset: this vendor's tool feeds every picture as pixel - 128"
        )
        raise ProjectError(message, Route(f"{route}.offset"), "leave `offset` out")
    return trained, section.fed_type or trained


def calibration_group(request: HandoverRequest) -> dict[str, Json]:
    calibration, quantization = request.calibration, request.sections.quantization
    group: dict[str, Json] = {"calibration_type": METHODS.get(calibration.method, "default")}
    if calibration.method == "max_percentile":
        group["max_percentile"] = calibration.percentile
    if calibration.per_channel:
        group["per_channel"] = True
    if request.decisions is None or not takes_node_info(request):
        group |= _units(request)
    if quantization.outputs in ("int8", "int16"):
        group["optimization"] = f"set_model_output_{quantization.outputs}"
    return {**group, **folders(request)}


def takes_node_info(request: HandoverRequest) -> bool:
    """Whether the march supports node_info; RDK X3 has run_on_cpu and run_on_bpu only."""
    return request.target.march != "bernoulli2"


def _units(request: HandoverRequest) -> dict[str, Json]:
    """run_on_cpu and run_on_bpu; without decisions, the names in the project that are no
    selector."""
    quantization, decisions = request.sections.quantization, request.decisions
    units: dict[str, tuple[str, ...]] = {"cpu": quantization.cpu, "npu": quantization.npu}
    if decisions is not None:
        units = {
            unit: tuple(name for name, node in decisions.nodes.items() if node.unit == unit)
            for unit in units
        }
    keys = (("run_on_cpu", units["cpu"]), ("run_on_bpu", units["npu"]))
    lists = {key: [name for name in names if not is_pattern(name)] for key, names in keys}
    return {key: ";".join(names) for key, names in lists.items() if names}


def node_info(request: HandoverRequest, on_cpu: Sequence[str] = ()) -> dict[str, Json]:
    """`node_info`: unit and types of each node with a decision. A node with one of the float types
    `on_cpu` runs on the CPU."""
    decisions = request.decisions
    if decisions is None or not takes_node_info(request):
        return {}
    entries = {
        name: {"ON": "CPU"} if node.whole in on_cpu else _fields(node)
        for name, node in decisions.nodes.items()
    }
    fields = {name: entry for name, entry in entries.items() if entry}
    return {"node_info": fields} if fields else {}


def _fields(node: NodeDecision) -> dict[str, Json]:
    units = {"npu": "BPU", "cpu": "CPU"}
    unit = {"ON": units[node.unit]} if node.unit else {}
    types = set(node.inputs.values())
    if len(types) == 1 and len(node.inputs) == node.operands:
        inputs = {"InputType": types.pop()}
    else:
        inputs = {f"InputType{index}": kind for index, kind in node.inputs.items()}
    return {**unit, **inputs, **({"OutputType": node.output} if node.output else {})}


def folders(request: HandoverRequest) -> dict[str, Json]:
    names = request.folders or {}
    return {"cal_data_dir": _list(f"./{CALIBRATION}/{names[name]}" for name in names) or None}


def omissions(request: HandoverRequest) -> list[str]:
    """The native settings that no group expresses, and the tool's behavior instead."""
    calibration, quantization = request.calibration, request.sections.quantization
    decisions = request.decisions
    is_known = calibration.method in METHODS and calibration.method != "default"
    unknown = [] if is_known else [f"calibration.method: {calibration.method}; {SEARCHES}"]
    if calibration.recipe == "best":
        unknown.append(f"calibration.recipe: best; {SEARCHES}")
    model = [f"model.{key}" for key in ("split",) if request.sections.model.split != "none"]
    if request.sections.custom_operators:
        model.append("custom_operators: register them there, by `custom_op`")
    if decisions is None:
        names = (*quantization.cpu, *quantization.npu)
        patterns = [f"the pattern `{name}`" for name in names if is_pattern(name)]
        return [*unknown, *patterns, *model]
    nameless = [f"settings of `{name}`: no node of the model" for name in decisions.nameless]
    switches = [
        f"quantization.{name}: the search has found it to help" for name in decisions.extra_switches
    ]
    return [*unknown, *switches, *nameless, *model]


def carried_keys(request: HandoverRequest) -> tuple[str, ...]:
    """The keys of `quantization:` that the groups express."""
    keys = ("cpu", "npu", "outputs")
    if request.decisions is None:
        return keys
    widened = ("widen", "widen_answers", "widen_sensitive") if request.decisions.has_recipe else ()
    return (*keys, *(("types", "layers", *widened) if takes_node_info(request) else ()))


def numbers(values: PerChannel) -> str:
    """The numbers, separated by spaces."""
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def _list(items: Iterable[str]) -> str:
    return ";".join(items)


def compiler_group(request: HandoverRequest, *keys: str, hardest: str) -> dict[str, Json]:
    """The `keys` of `compile:` that the tool has; `hardest` is its highest optimization level."""
    options = digest.plain(request.sections.compile)
    options["optimize_level"] = min(options["optimize_level"], hardest)
    return {key: options[key] for key in keys if options[key]}
