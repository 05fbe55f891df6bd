"""Type requests: the rules of `quantization:` as requests for single nodes and tensor uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from npumake.borders.images import images
from npumake.detection.notes import joins_coefficients
from npumake.engine.fusion import absorbed
from npumake.errors import Route
from npumake.graph import Graph, GraphNames, Node, Value, producer
from npumake.project.sections import LayerTypes, Quantization
from npumake.quant.precision.optional_selectors import without_missing
from npumake.quant.precision.placement import MOVE_OPERATORS, source_tensor
from npumake.quant.precision.selectors import (
    ALL_NODES,
    BOXES,
    MASKS,
    SelectedNodes,
    is_of_nodes,
    ordered_rules,
    select_nodes,
    strength,
)
from npumake.quant.precision.type_propagation import (
    OUT,
    WIDE,
    TensorUse,
    TypeRequests,
    operands,
    tensor_uses,
)

FLOATS = ("float16", "float32")
WEAKEST = (-1, 0)  # weaker than every selector
OF_ALL_NODES = (0, 0)


@dataclass(frozen=True)
class RequestedTypes:
    """The requests of one project for one graph."""

    by_use: TypeRequests = field(default_factory=TypeRequests)
    types: dict[Node, str] = field(default_factory=dict)  # float16 and float32 nodes
    wide_inputs: dict[Value, None] = field(default_factory=dict)  # for which a rule wants int16
    float_inputs: set[Value] = field(default_factory=set)  # model inputs that stay float
    cpu: list[Node] = field(default_factory=list)
    npu: list[Node] = field(default_factory=list)
    on_both: list[Node] = field(default_factory=list)  # of `npu`, though `cpu` has it as well
    typed: set[Node] = field(default_factory=set)  # with an integer type by operator or name
    notes: list[str] = field(default_factory=list)

    def of_type(self, type: str) -> list[Node]:
        return [node for node, requested in self.types.items() if requested == type]


def requested_types(graph: Graph, quantization: Quantization) -> RequestedTypes:
    """The requests of `quantization` for `graph`.

    A clamp takes the requests of the node that absorbs it. Of `npu` and `cpu` the more specific
    selector wins, `npu` on a tie. A data movement follows its producer unless a selector is
    stronger than `*`. Raises ProjectError for a name that selects nothing.
    """
    requests, parts = RequestedTypes(), GraphNames(graph)
    quantization, notes = without_missing(parts, quantization)
    requests.notes.extend(notes)
    wholes = {clamp: node for node in graph.nodes() if (clamp := absorbed(node)) is not None}
    _ask_types(requests, parts, quantization, wholes)
    for name, layer in _weakest_first(parts, quantization.layers):
        for node in select_nodes(parts, name, Route(f"quantization.layers.{name}")).nodes:
            _ask_layer(requests, wholes.get(node, node), layer, clamp=node in wholes)
            if is_of_nodes(name):
                requests.typed.add(wholes.get(node, node))
    if quantization.outputs in ("int8", "int16"):
        makers = (producer(source_tensor(value)) for value in graph.outputs)
        outputs = [(wholes.get(maker, maker), OUT) for maker in makers if maker is not None]
        _request(requests.by_use, outputs, quantization.outputs, firmly=True)
    pictures = [value for value in graph.inputs if str(value.name) in images(graph)]
    _request(requests.by_use, pictures, "int8", firmly=True)  # their pixels are codes
    cpu = _named_by(parts, quantization.cpu, "cpu", wholes)
    npu = _named_by(parts, quantization.npu, "npu", wholes)
    weak = {node for node in npu if node.op_type in MOVE_OPERATORS and npu[node] == OF_ALL_NODES}
    asked_for = (node for node in npu if node not in weak)
    requests.npu.extend(node for node in asked_for if npu[node] >= cpu.get(node, WEAKEST))
    requests.on_both.extend(node for node in npu if npu[node] == cpu.get(node))
    requests.cpu.extend(node for node in cpu if cpu[node] > npu.get(node, WEAKEST))
    return requests


def _ask_types(
    requests: RequestedTypes,
    parts: GraphNames,
    quantization: Quantization,
    wholes: Mapping[Node, Node],
) -> None:
    for rule in ordered_rules(parts, quantization.types):
        selected = select_nodes(parts, rule.name, rule.route)
        if rule.name == BOXES and not selected.nodes:
            requests.notes.append(
                "BOXES has no effect: no node of the model computes boxes from distances"
            )
        if rule.name == MASKS and joins_coefficients(parts.graph):
            requests.notes.append("mask coefficients stay in 8 bits: they are part of an output")
        nodes, results = (
            tuple(dict.fromkeys(wholes.get(node, node) for node in names))
            for names in (selected.nodes, selected.results)
        )
        meant = SelectedNodes(nodes, selected.inputs, results)
        _ask(requests, meant, rule.type, firmly=rule.name != ALL_NODES)
        for value in selected.inputs:
            requests.wide_inputs.pop(value, None)
            if rule.type == WIDE and rule.name != ALL_NODES:
                requests.wide_inputs[value] = None
        if rule.type not in FLOATS and is_of_nodes(rule.name):
            requests.typed.update(nodes)


def _weakest_first(
    parts: GraphNames, layers: Mapping[str, LayerTypes]
) -> list[tuple[str, LayerTypes]]:
    routes = {name: Route(f"quantization.layers.{name}") for name in sorted(layers)}
    order = sorted(routes, key=lambda name: strength(parts, name, routes[name]))
    return [(name, layers[name]) for name in order]


def _ask(requests: RequestedTypes, selected: SelectedNodes, type: str, firmly: bool) -> None:
    """Records a rule. A node with a float output is float itself."""
    for node in (*selected.nodes, *selected.results):
        requests.types.pop(node, None)
        if type in FLOATS:
            requests.types[node] = type
        asked_of = tensor_uses(node) if node in selected.nodes else [(node, OUT)]
        _request(requests.by_use, asked_of, type, firmly)
    for value in selected.inputs:
        (requests.float_inputs.add if type in FLOATS else requests.float_inputs.discard)(value)
        _request(requests.by_use, [value], type, firmly)


def _ask_layer(requests: RequestedTypes, node: Node, layer: LayerTypes, clamp: bool) -> None:
    """Records a layer's types. A clamp's input is not a tensor of the chip."""
    if layer.output is not None:
        _request(requests.by_use, [(node, OUT)], layer.output, firmly=True)
    if clamp:
        return
    requests.notes.extend(_idle_types(node, layer))
    for index in operands(node):
        own = layer.inputs[index] if index < len(layer.inputs) else None
        if (type := own or layer.input) is not None:
            _request(requests.by_use, [(node, index)], type, firmly=True)


def _idle_types(node: Node, layer: LayerTypes) -> Iterator[str]:
    """A note for each int16 of an input that has none."""
    for index, type in enumerate(layer.inputs):
        if type == WIDE and index >= len(node.inputs):
            yield f"int16 of input {index} has no effect: {node.name} has {len(node.inputs)} inputs"
        elif type == WIDE and index not in operands(node):
            yield f"int16 of input {index} of {node.name} has no effect: it is no activation"


def _request(requests: TypeRequests, spots: Iterable[TensorUse], type: str, firmly: bool) -> None:
    spots = list(spots)
    requests.wide.difference_update(spots)
    requests.narrow.difference_update(spots)
    if type == WIDE:
        requests.wide.update(spots)
    elif firmly and type not in FLOATS:
        requests.narrow.update(spots)


def _named_by(
    parts: GraphNames, names: Iterable[str], key: str, wholes: Mapping[Node, Node]
) -> dict[Node, tuple[int, int]]:
    """The nodes that are named, each with the strength of the strongest of its names."""
    strengths: dict[Node, tuple[int, int]] = {}
    for index, name in enumerate(names):
        route = Route(f"quantization.{key}.{index}")
        for node in select_nodes(parts, name, route).nodes:
            whole = wholes.get(node, node)
            strengths[whole] = max(strengths.get(whole, WEAKEST), strength(parts, name, route))
    return strengths
