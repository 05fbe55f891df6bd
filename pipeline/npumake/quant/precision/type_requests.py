"""What `quantization:` asks for, name by name, as wishes about single nodes and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npumake.borders.images import images
from npumake.detection.notes import joins_coefficients
from npumake.engine.fusion import absorbed
from npumake.errors import Route
from npumake.graph import Graph, Node, Value, producer
from npumake.project.sections import LayerTypes, Quantization
from npumake.quant.precision.optional_selectors import without_missing
from npumake.quant.precision.placement import PASSIVE, root
from npumake.quant.precision.selectors import (
    BOXES,
    EVERYTHING,
    MASKS,
    SelectedNodes,
    in_order,
    is_of_nodes,
    named,
    strength,
)
from npumake.quant.precision.type_propagation import (
    OUT,
    WIDE,
    TensorUse,
    TypeRequests,
    operands,
    spots,
)

FLOATS = ("float16", "float32")
WEAKEST = (-1, 0)  # of no name
OF_EVERYTHING = (0, 0)


@dataclass(frozen=True)
class RequestedTypes:
    wishes: TypeRequests = field(default_factory=TypeRequests)
    types: dict[Node, str] = field(default_factory=dict)  # of the nodes that are to be float
    fed: set[Value] = field(default_factory=set)  # inputs that are to be float
    cpu: list[Node] = field(default_factory=list)
    npu: list[Node] = field(default_factory=list)
    typed: set[Node] = field(default_factory=set)  # of whose operator or name an integer is asked
    notes: list[str] = field(default_factory=list)

    def of_type(self, type: str) -> list[Node]:
        return [node for node, given in self.types.items() if given == type]


def asked(graph: Graph, quantization: Quantization) -> RequestedTypes:
    """A clamp is asked for what the node that absorbs it is asked for. Of `npu` and `cpu` the one
    wins whose name says more, and `npu` where both say as much. What only moves values follows its
    producer unless a name says more than `*`.

    Raises ProjectError for a name that means nothing.
    """
    found = RequestedTypes()
    quantization, notes = without_missing(graph, quantization)
    found.notes.extend(notes)
    wholes = {clamp: node for node in graph.nodes() if (clamp := absorbed(node)) is not None}
    _ask_types(found, graph, quantization, wholes)
    for name, layer in _weakest_first(graph, quantization.layers):
        for node in named(graph, name, Route(f"quantization.layers.{name}")).nodes:
            _ask_layer(found, wholes.get(node, node), layer, clamp=node in wholes)
            if is_of_nodes(name):
                found.typed.add(wholes.get(node, node))
    if quantization.outputs in ("int8", "int16"):
        makers = (producer(root(value)) for value in graph.outputs)
        made = [(wholes.get(maker, maker), OUT) for maker in makers if maker is not None]
        _wish(found.wishes, made, quantization.outputs, firmly=True)
    pictures = [value for value in graph.inputs if str(value.name) in images(graph)]
    _wish(found.wishes, pictures, "int8", firmly=True)  # their pixels are codes
    cpu = _named_by(graph, quantization.cpu, "cpu", wholes)
    npu = _named_by(graph, quantization.npu, "npu", wholes)
    weak = {node for node in npu if node.op_type in PASSIVE and npu[node] == OF_EVERYTHING}
    asked_for = (node for node in npu if node not in weak)
    found.npu.extend(node for node in asked_for if npu[node] >= cpu.get(node, WEAKEST))
    found.cpu.extend(node for node in cpu if cpu[node] > npu.get(node, WEAKEST))
    return found


def _ask_types(
    found: RequestedTypes, graph: Graph, quantization: Quantization, wholes: Mapping[Node, Node]
) -> None:
    for rule in in_order(graph, quantization.types):
        given = named(graph, rule.name, rule.route)
        if rule.name == BOXES and not given.nodes:
            found.notes.append("BOXES has no effect: no node of the model makes boxes of distances")
        if rule.name == MASKS and joins_coefficients(graph):
            found.notes.append("mask coefficients stay in 8 bits: they are a part of an output")
        nodes, results = (
            tuple(dict.fromkeys(wholes.get(node, node) for node in each))
            for each in (given.nodes, given.results)
        )
        meant = SelectedNodes(nodes, given.inputs, results)
        _ask(found, meant, rule.type, firmly=rule.name != EVERYTHING)
        if rule.type not in FLOATS and is_of_nodes(rule.name):
            found.typed.update(nodes)


def _weakest_first(graph: Graph, layers: Mapping[str, LayerTypes]) -> list[tuple[str, LayerTypes]]:
    routes = {name: Route(f"quantization.layers.{name}") for name in sorted(layers)}
    order = sorted(routes, key=lambda name: strength(graph, name, routes[name]))
    return [(name, layers[name]) for name in order]


def _ask(found: RequestedTypes, given: SelectedNodes, type: str, firmly: bool) -> None:
    """A node whose result is to be float is float itself."""
    for node in (*given.nodes, *given.results):
        found.types.pop(node, None)
        if type in FLOATS:
            found.types[node] = type
        asked_of = spots(node) if node in given.nodes else [(node, OUT)]
        _wish(found.wishes, asked_of, type, firmly)
    for value in given.inputs:
        (found.fed.add if type in FLOATS else found.fed.discard)(value)
        _wish(found.wishes, [value], type, firmly)


def _ask_layer(found: RequestedTypes, node: Node, layer: LayerTypes, clamp: bool) -> None:
    """What a clamp reads is no tensor of the chip's."""
    if layer.output is not None:
        _wish(found.wishes, [(node, OUT)], layer.output, firmly=True)
    if clamp:
        return
    for index in operands(node):
        own = layer.inputs[index] if index < len(layer.inputs) else None
        if (type := own or layer.input) is not None:
            _wish(found.wishes, [(node, index)], type, firmly=True)


def _wish(wishes: TypeRequests, spots: Iterable[TensorUse], type: str, firmly: bool) -> None:
    spots = list(spots)
    wishes.wide.difference_update(spots)
    wishes.narrow.difference_update(spots)
    if type == WIDE:
        wishes.wide.update(spots)
    elif firmly and type not in FLOATS:
        wishes.narrow.update(spots)


def _named_by(
    graph: Graph, names: Iterable[str], key: str, wholes: Mapping[Node, Node]
) -> dict[Node, tuple[int, int]]:
    """The nodes that are named, each with the strength of the strongest of its names."""
    found: dict[Node, tuple[int, int]] = {}
    for index, name in enumerate(names):
        route = Route(f"quantization.{key}.{index}")
        for node in named(graph, name, route).nodes:
            whole = wholes.get(node, node)
            found[whole] = max(found.get(whole, WEAKEST), strength(graph, name, route))
    return found
