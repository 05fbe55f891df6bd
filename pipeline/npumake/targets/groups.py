"""The groups that the YAML of hb_mapper and that of hb_compile share, written from our words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from npumake import digest
from npumake.data.input_samples import ModelInput
from npumake.digest import Json
from npumake.errors import ProjectError, Route
from npumake.project.sections import PerChannel
from npumake.targets.handover import (
    CALIBRATION,
    PRODUCTS,
    HandoverRequest,
    NodeDecision,
    is_pattern,
)

MODELS = (".onnx", ".prototxt")
METHODS = {
    **{name: name for name in ("default", "kl", "load", "max", "mix", "skip")},
    **dict.fromkeys(("standard", "max_percentile"), "max"),
    "modelwise": "default",
}
SEARCHES = "the tool searches on its own"
PLAIN = {1: "gray", 3: "rgb"}  # channels of an 8-bit input of which no more is said


def named(asked: HandoverRequest) -> dict[str, Json]:
    """The files and folders that a document names, in `model_parameters`."""
    if asked.weights is None:
        model: dict[str, Json] = {"onnx_model": asked.model}
    else:
        model = {"prototxt": asked.model, "caffe_model": asked.weights}
    return {**model, "working_dir": PRODUCTS, "output_model_file_prefix": asked.prefix}


def model_group(asked: HandoverRequest) -> dict[str, Json]:
    model, compile = asked.sections.model, asked.sections.compile
    types, nodes = ((*model.remove_types, *compile.remove_types), model.remove_nodes)
    lists = {
        "output_nodes": model.outputs,
        "remove_node_type": tuple(dict.fromkeys(types)),
        "remove_node_name": tuple(dict.fromkeys((*nodes, *compile.remove_nodes))),
    }
    return {
        **named(asked),
        "march": asked.target.march,
        **{key: ";".join(names) for key, names in lists.items() if names},
    }


def input_group(asked: HandoverRequest) -> dict[str, Json]:
    """All but mean and scale. Raises ProjectError for what such a tool cannot be told."""
    inputs = asked.inputs.values()
    trained = [types(one) for one in inputs]
    ranges = ["bt601_video" if one.form.video else "regular" for one in inputs]
    group = {
        "input_name": _list(one.name for one in inputs),
        "input_type_train": _list(kind for kind, _ in trained),
        "input_layout_train": _list(one.section.layout for one in inputs),
        "input_type_rt": _list(fed for _, fed in trained),
        "input_shape": _list("x".join(map(str, one.form.shape)) for one in inputs),
        **({"input_space_and_range": _list(ranges)} if set(ranges) != {"regular"} else {}),
    }
    batch = max(one.section.batch for one in inputs)
    return group | ({"input_batch": batch} if batch > 1 else {})


def types(given: ModelInput) -> tuple[str, str]:
    """What the input was trained on and is fed, in the vendors' words. Raises ProjectError."""
    said, route = given.section, f"inputs.{given.name}"
    if said.preprocess is not None:
        what = "a picture in planes: this vendor's tool has no word for it"
        raise ProjectError(what, Route(f"{route}.preprocess"), "say `fed_type: nv12`")
    trained: str = said.type or "featuremap"
    if trained == "featuremap" and given.form.offset:
        sizes = dict(zip(said.layout, given.form.shape, strict=False))
        if len(given.form.shape) != 4 or sizes["C"] not in PLAIN:
            what = "8-bit numbers that are no picture: this vendor's tool feeds those as floats"
            raise ProjectError(what, Route(f"{route}.offset"), "say `offset: 0`")
        trained = PLAIN[sizes["C"]]
    elif trained != "featuremap" and not given.form.offset:
        what = "a picture without an offset: this vendor's tool feeds every picture as pixel - 128"
        raise ProjectError(what, Route(f"{route}.offset"), "leave `offset` out")
    return trained, said.fed_type or trained


def calibration_group(asked: HandoverRequest) -> dict[str, Json]:
    calibration, quantization = asked.calibration, asked.sections.quantization
    group: dict[str, Json] = {"calibration_type": METHODS.get(calibration.method, "default")}
    if calibration.method == "max_percentile":
        group["max_percentile"] = calibration.percentile
    if calibration.per_channel:
        group["per_channel"] = True
    if asked.decisions is None or not takes_node_info(asked):
        group |= _units(asked)
    if quantization.outputs in ("int8", "int16"):
        group["optimization"] = f"set_model_output_{quantization.outputs}"
    return {**group, **folders(asked)}


def takes_node_info(asked: HandoverRequest) -> bool:
    """RDK X3 knows run_on_cpu and run_on_bpu alone."""
    return asked.target.march != "bernoulli2"


def _units(asked: HandoverRequest) -> dict[str, Json]:
    """run_on_cpu and run_on_bpu: the nodes by name, without decisions those that are no pattern."""
    quantization, decided = asked.sections.quantization, asked.decisions
    found: dict[str, tuple[str, ...]] = {"cpu": quantization.cpu, "npu": quantization.npu}
    if decided is not None:
        found = {
            unit: tuple(name for name, node in decided.nodes.items() if node.unit == unit)
            for unit in found
        }
    keys = (("run_on_cpu", found["cpu"]), ("run_on_bpu", found["npu"]))
    lists = {key: [name for name in names if not is_pattern(name)] for key, names in keys}
    return {key: ";".join(names) for key, names in lists.items() if names}


def node_info(asked: HandoverRequest, on_cpu: Sequence[str] = ()) -> dict[str, Json]:
    """`node_info`: unit and types of each node that something is decided of. A node that is wholly
    of one of the types `on_cpu` is the CPU's."""
    decided = asked.decisions
    if decided is None or not takes_node_info(asked):
        return {}
    found = {
        name: {"ON": "CPU"} if node.whole in on_cpu else _fields(node)
        for name, node in decided.nodes.items()
    }
    fields = {name: each for name, each in found.items() if each}
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


def folders(asked: HandoverRequest) -> dict[str, Json]:
    found = asked.folders or {}
    return {"cal_data_dir": _list(f"./{CALIBRATION}/{found[name]}" for name in found) or None}


def left_out(asked: HandoverRequest) -> list[str]:
    """What no group says, by its key in our YAML, and what the tool does instead."""
    calibration, quantization = asked.calibration, asked.sections.quantization
    decided = asked.decisions
    is_known = calibration.method in METHODS and calibration.method != "default"
    unknown = [] if is_known else [f"calibration.method: {calibration.method}; {SEARCHES}"]
    if calibration.recipe == "best":
        unknown.append(f"calibration.recipe: best; {SEARCHES}")
    model = [f"model.{key}" for key in ("split",) if asked.sections.model.split != "none"]
    if asked.sections.custom_operators:
        model.append("custom_operators: register them there, by `custom_op`")
    if decided is None:
        names = (*quantization.cpu, *quantization.npu)
        patterns = [f"the pattern `{name}`" for name in names if is_pattern(name)]
        return [*unknown, *patterns, *model]
    nameless = [f"what is asked of `{name}`: no node of the model" for name in decided.nameless]
    switches = [f"quantization.{name}: the search has found it to help" for name in decided.found]
    return [*unknown, *switches, *nameless, *model]


def handled(asked: HandoverRequest) -> tuple[str, ...]:
    """The keys of `quantization:` that the groups carry."""
    usual = ("cpu", "npu", "outputs")
    if asked.decisions is None:
        return usual
    widened = ("widen", "widen_answers", "widen_sensitive") if asked.decisions.has_recipe else ()
    return (*usual, *(("types", "layers", *widened) if takes_node_info(asked) else ()))


def numbers(values: PerChannel) -> str:
    """As the vendors write them: divided by spaces."""
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def _list(items: Iterable[str]) -> str:
    return ";".join(items)


def compiler_group(asked: HandoverRequest, *keys: str, hardest: str) -> dict[str, Json]:
    """What the project says under `compile`, of the keys that the tool has; `hardest` is the
    highest level it knows."""
    said = digest.plain(asked.sections.compile)
    said["optimize_level"] = min(said["optimize_level"], hardest)
    return {key: said[key] for key in keys if said[key]}
