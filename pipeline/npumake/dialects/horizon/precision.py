"""quant_config: precision by model, operator, subgraph and node, the later the stronger.

    model_config < op_config < subgraph_config < node_config

    model_config      all_node_type, model_output_type, activation, weight, a search
    op_config         {Softmax: {qtype: int16}}
    subgraph_config   {head: {inputs: [a], outputs: [b], qtype: int16}}
    node_config       {conv1: {qtype: int8, input0: int16}}, also {conv1: {ON: int16}}

A search over the whole model is `modelwise`, one layer by layer is `mix`. Source: the tables of
HMCT in OpenExplorer 3.x.
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

# type there → type here
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
_SUMS = "`int32` is ignored: a Conv makes sums of int32 where it may, nothing else does"
_WIDER = "`{}` is int16: weights stay int8"
# key of quant_config → why it has no effect
_WITHOUT_EFFECT = {
    "num_sample": "all samples are used",
    "metric": "a search by layers compares by noise, a correction needs none",
    "similarity": "a search by layers tries all it has",
}


def put_precision(vendor: VendorYaml, native: Native, wishes: NodeRequests) -> None:
    """`calibration:` and `quantization:` as quant_config has them. Raises ProjectError."""
    config = quant_config(vendor)
    if config is None:
        return
    for level in config.inside():
        if level.name not in ("model_config", *NAMED):
            raise level.strange("level", ("model_config", *NAMED))
    if model := config.at("model_config"):
        _put_model(native, wishes, model)
    for name, named in NAMED.items():
        found = config.at(name)
        for entry in found.inside() if found else ():
            _wish(wishes, named(entry), entry)


def precision_notes(vendor: VendorYaml) -> tuple[Note, ...]:
    """What quant_config says that has no effect here, or another."""
    config = quant_config(vendor)
    found = []
    for entry in config.below() if config else ():
        if entry.name in _WITHOUT_EFFECT and "modelwise_search" not in entry.route:
            message = f"`{entry.name}` is ignored: {_WITHOUT_EFFECT[entry.name]}"
            found.append(Note(message, entry.spot.value))
        elif entry.value == SUMS:
            found.append(Note(_SUMS, entry.spot.value))
        elif isinstance(entry.value, str) and TYPES.get(entry.value, entry.value) != entry.value:
            found.append(Note(_WIDER.format(entry.value), entry.spot.value))
    return tuple(found)


def _put_model(native: Native, wishes: NodeRequests, model: ConfigEntry) -> None:
    """The keys may stand below a name of the user's own, such as `default`."""
    inside = list(model.inside())
    if len(inside) == 1 and inside[0].name not in MODEL_KEYS and isinstance(inside[0].value, dict):
        model, inside = inside[0], list(inside[0].inside())
    for entry in inside:
        if entry.name not in MODEL_KEYS:
            raise entry.strange("key", MODEL_KEYS)
    if (kind := model.at("all_node_type")) and kind.value != SUMS:
        wishes.type(EVERY, _type(kind), kind.spot)
    if (outputs := model.at("model_output_type")) and outputs.value != SUMS:
        value = outputs.one_of(OUTPUTS)
        native.put(("quantization", "outputs"), value, outputs.spot)
    if weight := model.at("weight"):
        _put_weight(native, weight)
    put_activation(native, model)


def _put_weight(native: Native, weight: ConfigEntry) -> None:
    for entry in weight.inside():
        if entry.name != "bias_correction":
            raise entry.strange("key", ("bias_correction",))
        for option in entry.inside():
            if option.name not in _WITHOUT_EFFECT:
                raise option.strange("key", ("num_sample", "metric"))
        native.put(("quantization", "bias_correction"), True, entry.spot)


def _operator(entry: ConfigEntry) -> str:
    return operator_name(entry.name)


def _node(entry: ConfigEntry) -> str:
    return node_name(entry.name)


def _subgraph(entry: ConfigEntry) -> str:
    """The name for what lies between its inputs and outputs."""
    ends = []
    for side in _ENDS:
        names = entry.at(side)
        listed = names.value if names and isinstance(names.value, list) else []
        if not listed or not all(isinstance(name, str) and name for name in listed):
            hint = "write  inputs: [tensor], outputs: [tensor]"
            raise entry.error(f"`{entry.name}` needs names of its {side}", hint)
        ends.append(", ".join(listed))
    return " -> ".join(ends)


def _wish(wishes: NodeRequests, name: str, entry: ConfigEntry) -> None:
    """The type of the whole first: that of a place of it beats it. The model may have no such
    node."""
    fields = [field for field in entry.inside() if field.value != SUMS]
    wishes.optional[name] = entry.spot
    for field in sorted(fields, key=lambda field: field.name not in ("qtype", "ON")):
        number = _INPUT.fullmatch(field.name)
        if field.name == "ON" and isinstance(field.value, str) and field.value in UNITS:
            wishes.run(name, UNITS[field.value], field.spot)
        elif field.name in ("qtype", "ON"):
            wishes.type(name, _type(field), field.spot)
        elif number or field.name in _OUTPUT:
            place = "output" if number is None else int(number[1]) if number[1] else "input"
            wishes.place(name, place, _integer(field), field.spot)
        elif field.name not in _ENDS:
            raise field.strange("key", ("qtype", "InputType", "OutputType", "input0"))


# level → what its names mean, the weakest first
NAMED: dict[str, Callable[[ConfigEntry], str]] = {
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
