"""quant_config: precision by model, operator, subgraph and node; the later overrides the earlier.

    model_config < op_config < subgraph_config < node_config

    model_config      all_node_type, model_output_type, activation, weight, a search
    op_config         {Softmax: {qtype: int16}}
    subgraph_config   {head: {inputs: [a], outputs: [b], qtype: int16}}
    node_config       {conv1: {qtype: int8, input0: int16}}, also {conv1: {ON: int16}}

A search over the whole model is our `modelwise`; a layer-wise search is `mix`. Source: the tables
of HMCT in OpenExplorer 3.x.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from npumake.dialects.horizon.activation import put_activation
from npumake.dialects.horizon.entry import ConfigEntry, quant_config
from npumake.dialects.native import Native
from npumake.dialects.openexplorer.node_requests import (
    EVERY,
    INTEGERS,
    UNITS,
    NodeRequests,
    node_name,
    operator_name,
)
from npumake.dialects.vendor_yaml import VendorYaml
from npumake.project.vendor import Note

# type in quant_config → our type
TYPES = {
    **{name: name for name in ("int8", "int16", "float16", "float32")},
    **dict.fromkeys(("dual-int16", "int16-ec"), "int16"),
}
OUTPUTS = ("int8", "int16", "float32")
MODEL_KEYS = (
    *("all_node_type", "model_output_type", "activation", "weight"),
    *("modelwise_search", "layerwise_search"),
)
_INPUT = re.compile(r"(?:InputType|input)([0-9]{0,3})")
_OUTPUT = ("OutputType", "output", "output0")
_ENDS = ("inputs", "outputs")  # of a subgraph

SUMS = "int32"
_SUMS = "`int32` is ignored: only a Conv can output int32, and does so where it may"
_WIDER = "`{}` becomes int16: weights stay int8"
# key of quant_config → why it has no effect
_WITHOUT_EFFECT = {
    "num_sample": "all samples are used",
    "metric": "a layer-wise search compares noise, and a correction needs no metric",
    "similarity": "a layer-wise search tries every candidate",
}


def put_precision(vendor: VendorYaml, native: Native, requests: NodeRequests) -> None:
    """Sets `calibration:` and `quantization:` from quant_config. Raises ProjectError."""
    config = quant_config(vendor)
    if config is None:
        return
    for level in config.children():
        if level.name not in ("model_config", *LEVEL_NAMES):
            raise level.unknown("level", ("model_config", *LEVEL_NAMES))
    if model := config.at("model_config"):
        _put_model(native, requests, model)
    for name, name_of in LEVEL_NAMES.items():
        entries = config.at(name)
        for entry in entries.children() if entries else ():
            _request(requests, name_of(entry), entry)


def precision_notes(vendor: VendorYaml) -> tuple[Note, ...]:
    """Notes on keys of quant_config that have no effect here, or another effect."""
    config = quant_config(vendor)
    notes = []
    for entry in config.descendants() if config else ():
        if entry.name in _WITHOUT_EFFECT and "modelwise_search" not in entry.route:
            message = f"`{entry.name}` is ignored: {_WITHOUT_EFFECT[entry.name]}"
            notes.append(Note(message, entry.spot.value))
        elif entry.value == SUMS:
            notes.append(Note(_SUMS, entry.spot.value))
        elif isinstance(entry.value, str) and TYPES.get(entry.value, entry.value) != entry.value:
            notes.append(Note(_WIDER.format(entry.value), entry.spot.value))
    return tuple(notes)


def _put_model(native: Native, requests: NodeRequests, model: ConfigEntry) -> None:
    """Sets model_config. Its keys may be nested under a name of the user's, such as `default`."""
    children = list(model.children())
    if (
        len(children) == 1
        and children[0].name not in MODEL_KEYS
        and isinstance(children[0].value, dict)
    ):
        model, children = children[0], list(children[0].children())
    for entry in children:
        if entry.name not in MODEL_KEYS:
            raise entry.unknown("key", MODEL_KEYS)
    if (kind := model.at("all_node_type")) and kind.value != SUMS:
        requests.type(EVERY, _type(kind), kind.spot)
    if (outputs := model.at("model_output_type")) and outputs.value != SUMS:
        value = outputs.one_of(OUTPUTS)
        native.put(("quantization", "outputs"), value, outputs.spot)
    if weight := model.at("weight"):
        _put_weight(native, weight)
    put_activation(native, model)


def _put_weight(native: Native, weight: ConfigEntry) -> None:
    for entry in weight.children():
        if entry.name != "bias_correction":
            raise entry.unknown("key", ("bias_correction",))
        for option in entry.children():
            if option.name not in _WITHOUT_EFFECT:
                raise option.unknown("key", ("num_sample", "metric"))
        native.put(("quantization", "bias_correction"), True, entry.spot)


def _operator(entry: ConfigEntry) -> str:
    return operator_name(entry.name)


def _node(entry: ConfigEntry) -> str:
    return node_name(entry.name)


def _subgraph(entry: ConfigEntry) -> str:
    """The selector of the nodes between the subgraph's inputs and outputs."""
    ends = []
    for side in _ENDS:
        names = entry.at(side)
        listed = names.value if names and isinstance(names.value, list) else []
        if not listed or not all(isinstance(name, str) and name for name in listed):
            hint = "write  inputs: [tensor], outputs: [tensor]"
            raise entry.error(f"`{entry.name}` needs names of its {side}", hint)
        ends.append(", ".join(listed))
    return " -> ".join(ends)


def _request(requests: NodeRequests, name: str, entry: ConfigEntry) -> None:
    """Requests for the nodes `name`, which are optional. The type of a node comes first, since the
    type of one input or output overrides it."""
    fields = [field for field in entry.children() if field.value != SUMS]
    requests.optional[name] = entry.spot
    for field in sorted(fields, key=lambda field: field.name not in ("qtype", "ON")):
        number = _INPUT.fullmatch(field.name)
        if field.name == "ON" and isinstance(field.value, str) and field.value in UNITS:
            requests.run(name, UNITS[field.value], field.spot)
        elif field.name in ("qtype", "ON"):
            requests.type(name, _type(field), field.spot)
        elif number or field.name in _OUTPUT:
            place = "output" if number is None else int(number[1]) if number[1] else "input"
            requests.place(name, place, _integer(field), field.spot)
        elif field.name not in _ENDS:
            raise field.unknown("key", ("qtype", "InputType", "OutputType", "input0"))


# level → the selector of one of its names; the weakest level first
LEVEL_NAMES: dict[str, Callable[[ConfigEntry], str]] = {
    "op_config": _operator,
    "subgraph_config": _subgraph,
    "node_config": _node,
}


def _type(entry: ConfigEntry) -> str:
    return TYPES[entry.one_of(tuple(TYPES))]


def _integer(entry: ConfigEntry) -> str:
    if _type(entry) not in INTEGERS:
        hint = "write  qtype: " + str(entry.value)
        raise entry.error(f"`{entry.value}` is for a whole node, not for one place of it", hint)
    return _type(entry)
