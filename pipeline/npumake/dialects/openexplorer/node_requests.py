"""Requests for single nodes in the keys of hb_mapper and hb_compile → `quantization:`.

    node_info            {conv1: {ON: CPU}}, {softmax: {ON: BPU, InputType0: int16}}
    run_on_cpu           conv1;conv2, as run_on_bpu; node_info overrides both
    set_node_data_type   conv1:int16, the type of the output
    optimization         set_model_output_int8, set_Softmax_input_int16, run_fast

Requests come in order, the weakest first. Public files name nodes that the tool inserts, and
nodes of other models: a name that the model lacks is a note without effect. Source: the
D-Robotics PTQ guide, and the tables of OpenExplorer 3.x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from npumake.dialects.native import Native
from npumake.dialects.openexplorer.translation import CALIBRATION, MODEL
from npumake.dialects.vendor_yaml import VendorYaml
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.graph import operator_called
from npumake.project.document import RoutePlace

EVERY = "*"
# The BPU lists six rows for a Softmax, which is one node here.
_ROWS = "reducemax|sub|exp|reducesum|reciprocal|mul"
_OF_SOFTMAX = re.compile(rf"(.+?)(?:_(?:{_ROWS}))?_FROM_QUANTIZED_SOFTMAX")
_OF_QUOTIENT = re.compile(r"((?:.*/)?Div(?:_[0-9]+)?)_(?:reciprocal|mul)")
_OF_SUM = re.compile("UNIT_CONV_FOR_(.+)")
_PREPROCESS = re.compile(r"HZ_PREPROCESS_FOR_(.+)")
INTEGERS = ("int8", "int16")
UNITS = {"BPU": "npu", "CPU": "cpu"}
NODE_INFO, OPTIMIZATION = f"{MODEL}.node_info", f"{CALIBRATION}.optimization"
_INPUT = re.compile(r"InputType([0-9]{0,3})")
_SIDE = re.compile(r"set_(\w+)_(input|output)_(int8|int16)")
_WORDS = "set_model_output_int8, set_model_output_int16, set_<Operator>_input_int16, run_fast"


def node_name(name: str) -> str:
    """Our name of a node that the vendor's tool inserts; any other name unchanged."""
    if match := _PREPROCESS.fullmatch(name):
        return f"preprocess_{match[1]}"
    for row in (_OF_SOFTMAX, _OF_QUOTIENT, _OF_SUM):
        if match := row.fullmatch(name):
            return match[1]
    return name


def inserted_name(name: str) -> str:
    """The inverse of `node_name` for a preprocessing node; any other name unchanged."""
    return re.sub("^preprocess_", "HZ_PREPROCESS_FOR_", name)


def operator_name(name: str) -> str:
    """The selector of all nodes of an operator; case is ignored."""
    return f"{operator_called(name) or name}(*)"


@dataclass(frozen=True)
class NodeRequests:
    """Requests by node name: the type, types of single inputs and outputs (`layers`), and the unit.
    `optional` names may be absent from the model."""

    types: list[tuple[str, str, RoutePlace]] = field(default_factory=list)
    layers: dict[str, dict[str | int, tuple[str, RoutePlace]]] = field(default_factory=dict)
    units: dict[str, tuple[str, RoutePlace]] = field(default_factory=dict)
    optional: dict[str, RoutePlace] = field(default_factory=dict)
    overridden: list[tuple[str, str, RoutePlace]] = field(default_factory=list)  # as `units`

    def type(self, name: str, type: str, spot: RoutePlace) -> None:
        """Requests a type for all inputs and outputs, overriding earlier requests."""
        self.types.append((name, type, spot))
        if self.layers and type in INTEGERS:
            self.layers[name] = {place: (type, spot) for place in ("input", "output")}

    def place(self, name: str, place: str | int, type: str, spot: RoutePlace) -> None:
        """Requests a type for "input" (all inputs), one input by index, or "output"."""
        self.layers.setdefault(name, {})[place] = (type, spot)

    def run(self, name: str, unit: str, spot: RoutePlace) -> None:
        before, at = self.units.get(name, (unit, spot))
        if before != unit:
            self.overridden.append((name, before, at))
        self.units[name] = (unit, spot)

    def allow_missing(self, name: str, spot: RoutePlace) -> None:
        if name != EVERY:
            self.optional[name] = spot

    def put(self, native: Native) -> None:
        rules = [({name: type}, spot) for name, type, spot in self.types]
        _put_list(native, "types", rules)
        for name, places in self.layers.items():
            for place in ("input", "output"):
                if place in places:
                    native.put(("quantization", "layers", name, place), *places[place])
            numbers = [place for place in places if isinstance(place, int)]
            if numbers:
                types = [places.get(number, (None,))[0] for number in range(max(numbers) + 1)]
                spot = places[numbers[0]][1]
                native.put(("quantization", "layers", name, "inputs"), types, spot)
        for unit in UNITS.values():
            items = [(name, spot) for name, (on, spot) in self.units.items() if on == unit]
            _put_list(native, unit, items)
        _put_list(native, "optional", list(self.optional.items()))


def _put_list(native: Native, key: str, items: list[tuple[Json, RoutePlace]]) -> None:
    """Sets a list of `quantization:`; each item keeps its place in the file."""
    if not items:
        return
    route = ("quantization", key)
    native.put(route, [item for item, _ in items], items[0][1])
    for index, (item, spot) in enumerate(items):
        native.places[*route, index] = spot
        for name in item if isinstance(item, dict) else ():
            native.places[*route, index, name] = spot


def request_units(vendor: VendorYaml, requests: NodeRequests) -> None:
    """Requests from run_on_cpu and run_on_bpu."""
    for name, unit in (("run_on_cpu", "cpu"), ("run_on_bpu", "npu")):
        key = f"{CALIBRATION}.{name}"
        for node in vendor.items(key):
            requests.run(node_name(node), unit, vendor.spot(key))
            requests.allow_missing(node_name(node), vendor.spot(key))


def request_node_info(vendor: VendorYaml, requests: NodeRequests) -> None:
    """Requests from node_info: a mapping, or the text `conv1:int16;conv2:int16`. Raises
    ProjectError."""
    nodes = vendor.raw_value(NODE_INFO)
    if nodes is None:
        return
    if isinstance(nodes, str):
        for node, type in node_types(vendor, NODE_INFO):
            requests.type(node, type, vendor.spot(NODE_INFO))
            requests.allow_missing(node, vendor.spot(NODE_INFO))
        return
    hint = "write  {node_name: {ON: BPU, InputType: int16, OutputType: int16}}"
    if not isinstance(nodes, dict) or not all(isinstance(item, dict) for item in nodes.values()):
        raise vendor.error(NODE_INFO, "`node_info` must be a mapping of nodes to mappings", hint)
    for written, fields in nodes.items():
        spot = vendor.document.places["model_parameters", "node_info", written]
        for node in map(node_name, filter(None, re.split(r"\s*;\s*", written))):
            requests.allow_missing(node, spot)
            for name, value in fields.items():
                place = vendor.document.places["model_parameters", "node_info", written, name]
                _request_field(requests, node, name, value, place)


def _request_field(
    requests: NodeRequests, node: str, name: str, value: Json, spot: RoutePlace
) -> None:
    number = _INPUT.fullmatch(name)
    if number is None and name not in ("ON", "OutputType"):
        hint = "known: ON, InputType, InputType0, OutputType"
        raise ProjectError(f"unknown key `{name}` of `{node}`", spot.key, hint)
    allowed = tuple(UNITS) if name == "ON" else INTEGERS
    if not isinstance(value, str) or value not in allowed:
        hint = f"allowed: {', '.join(allowed)}"
        raise ProjectError(f"`{name}` cannot be `{value}`", spot.value, hint)
    if name == "ON":
        requests.run(node, UNITS[value], spot)
    elif number is None:
        requests.place(node, "output", value, spot)
    else:
        requests.place(node, int(number[1]) if number[1] else "input", value, spot)


def node_types(vendor: VendorYaml, key: str) -> Iterator[tuple[str, str]]:
    """(node, type) for each item of `conv1:int16;conv2:int16`. Raises ProjectError."""
    for item in vendor.items(key):
        node, _, type = (part.strip() for part in item.rpartition(":"))
        if not node or type not in INTEGERS:
            message = f"`{item}` does not give a node its type"
            raise vendor.error(key, message, "write  node_name:int16;other_name:int16")
        yield node_name(node), type


def request_optimization(vendor: VendorYaml, native: Native, requests: NodeRequests) -> None:
    """Requests from optimization, a text or a list of texts. Raises ProjectError for an unknown
    word."""
    spot = vendor.spot(OPTIMIZATION)
    for word in _words(vendor):
        side = _SIDE.fullmatch(word)
        if word == "set_all_nodes_int16":
            requests.type(EVERY, "int16", spot)
        elif word == "run_fast":
            requests.run(EVERY, "npu", spot)
        elif side is None or side.group(1, 2) == ("model", "input"):
            raise vendor.error(OPTIMIZATION, f"unknown `{word}`", f"there are: {_WORDS}")
        elif side[1] == "model":
            native.put(("quantization", "outputs"), side[3], spot)
        else:
            requests.place(operator_name(side[1]), side[2], side[3], spot)
            requests.optional[operator_name(side[1])] = spot


def _words(vendor: VendorYaml) -> list[str]:
    value = vendor.raw_value(OPTIMIZATION)
    texts = value if isinstance(value, list) else [value or ""]
    if not all(isinstance(text, str) for text in texts):
        raise vendor.error(OPTIMIZATION, "`optimization` must be words", f"there are: {_WORDS}")
    return [word for text in texts for word in re.split(r"[,;\s]+", text) if word]
