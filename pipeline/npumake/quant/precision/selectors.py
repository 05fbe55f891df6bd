"""Selectors: names for parts of a model, resolved in the optimized graph.

name      the nodes of that name, or that compute the trained node of that name; else the input
          of the model or the producer of the tensor of that name
number    the nodes that compute the operator of that number in a TensorFlow Lite file
layer id  the nodes of a fused layer of SyNAP's: Conv_a_200_Conv_b_185
a, b -> c, d   every node on a path from a or b to c or d, these included; so is the producer of a
          tensor c, but not that of a tensor a
name...   every node between it and the outputs, itself excluded
Add(*)    every node of that operator; none if the model has no such node
INPUTS    the inputs of the model
BOXES     the nodes that compute a detector's boxes from distances; none in a model without
MASKS     the producers of a detector's mask coefficients, only their outputs
*         everything
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from npumake.detection.notes import box_nodes, coefficient_outputs
from npumake.errors import ProjectError, Route, did_you_mean
from npumake.graph import (
    Graph,
    GraphNames,
    Node,
    Value,
    inside,
    is_operator,
    operator_count,
    operator_nodes,
    origin,
    producer,
    reads,
)
from npumake.project.precision import Type, Types
from npumake.quant.precision.placement import concat_parts
from npumake.targets.spelled_functions import SPELLED_OUT

ALL_NODES, INPUTS, BOXES, MASKS = "*", "INPUTS", "BOXES", "MASKS"
MAX_NUMBER_DIGITS = 9
SILU = "Swish"
BEHIND, OF_OPERATOR, WAY = "...", "(*)", " -> "

BROAD_SELECTORS = (ALL_NODES, INPUTS, BOXES, MASKS)  # the weakest first


class SelectedNodes(NamedTuple):
    """The nodes and model inputs that a selector names."""

    nodes: tuple[Node, ...] = ()
    inputs: tuple[Value, ...] = ()
    results: tuple[Node, ...] = ()  # only outputs


class TypeRule(NamedTuple):
    """A selector with its type, and the YAML key of the rule."""

    name: str
    type: Type
    route: Route


def select_nodes(names: GraphNames, name: str, route: Route) -> SelectedNodes:
    """The parts of the graph that `name` selects. Raises ProjectError at `route` if there are
    none."""
    graph = names.graph
    if name == ALL_NODES:
        return SelectedNodes(tuple(graph.nodes()), graph.inputs)
    if name == INPUTS:
        return SelectedNodes((), graph.inputs)
    if name == BOXES:
        nodes = (node for trained in box_nodes(graph) for node in names.find(trained))
        return SelectedNodes(tuple(dict.fromkeys(nodes)))
    if name == MASKS:
        return SelectedNodes((), (), _mask_makers(graph))
    if name.endswith(OF_OPERATOR):
        return SelectedNodes(_of_operator(graph, name.removesuffix(OF_OPERATOR), route))
    if name.endswith(BEHIND):
        start = _exactly(names, name.removesuffix(BEHIND), route)
        return SelectedNodes(
            tuple(node for node in _behind(graph, start) if node not in start.nodes)
        )
    if WAY in name:
        first, _, last = name.partition(WAY)
        return SelectedNodes(_between(names, first, last, route))
    return _exactly(names, name, route)


def is_of_nodes(name: str) -> bool:
    """Whether the selector names one node or all of an operator, and no section of the model."""
    return name not in BROAD_SELECTORS and not name.endswith(BEHIND) and WAY not in name


def ordered_rules(names: GraphNames, types: Types | tuple[Types, ...]) -> list[TypeRule]:
    """The rules, the weakest first.

    A mapping has no order: there the rule that selects less is stronger, and of two `name...` the
    one that starts further behind.
    """
    if isinstance(types, Mapping):
        return _by_strength(names, types, "quantization.types")
    return [
        rule
        for index, rules in enumerate(types)
        for rule in _by_strength(names, rules, f"quantization.types.{index}")
    ]


def _by_strength(names: GraphNames, rules: Types, route: str) -> list[TypeRule]:
    typed = (TypeRule(name, rules[name], Route(f"{route}.{name}")) for name in sorted(rules))
    return sorted(typed, key=lambda rule: strength(names, rule.name, rule.route))


def strength(names: GraphNames, name: str, route: Route) -> tuple[int, int]:
    """The sort key of a selector, from the weakest, which selects most, to the strongest."""
    if name in BROAD_SELECTORS:
        return (BROAD_SELECTORS.index(name), 0)
    if name.endswith(OF_OPERATOR):
        return (3, 0)
    if name.endswith(BEHIND) or WAY in name:
        return (4, -len(select_nodes(names, name, route).nodes))
    return (5, 0)


def _mask_makers(graph: Graph) -> tuple[Node, ...]:
    """The nodes whose outputs, joined and moved, are the mask coefficients."""
    names = coefficient_outputs(graph)
    values = [value for value in graph.outputs if str(value.name) in names]
    makers = {producer(piece) for value in values for piece in concat_parts(value)}
    return tuple(node for node in graph.nodes() if node in makers)


def named_part(names: GraphNames, name: str) -> SelectedNodes | None:
    """The nodes that a name of a node, tensor, number or layer selects; None if there are none."""
    if nodes := names.find(name) or _numbered(names, name) or _of_layer_id(names.graph, name):
        return SelectedNodes(nodes)
    value = names.values.get(name)
    if value is not None and value.is_graph_input():
        return SelectedNodes((), (value,))
    maker = None if value is None else producer(value)
    return None if maker is None else SelectedNodes((maker,))


def _exactly(names: GraphNames, name: str, route: Route) -> SelectedNodes:
    selected, graph = named_part(names, name), names.graph
    if selected is None:
        _refuse_inner(graph, name, route)
        raise ProjectError(f"the optimized model has no node `{name}`", route, _hint(graph, name))
    return selected


def _hint(graph: Graph, name: str) -> str:
    count = operator_count(graph)
    if name.isdecimal() and count:
        return f"operators of the file have the numbers 0 to {count - 1}"
    return did_you_mean(name, _all_names(graph))


def _numbered(names: GraphNames, name: str) -> tuple[Node, ...]:
    """The nodes that compute the operator of that number in the trained file."""
    is_number = name.isdecimal() and name.isascii() and len(name) <= MAX_NUMBER_DIGITS
    trained = operator_nodes(names.graph, int(name)) if is_number else ()
    return tuple(dict.fromkeys(node for node_name in trained for node in names.find(node_name)))


def _of_layer_id(graph: Graph, name: str) -> tuple[Node, ...]:
    """The nodes of a layer id of SyNAP's quantizer: type_name_number of each fused node, one after
    another."""
    by_prefix = {
        f"{node.op_type}_{node_name}_": node
        for node in graph.nodes()
        for node_name in (*origin(node), str(node.name))
    }
    fused, rest = list[Node](), name
    while rest:
        start = max((text for text in by_prefix if rest.startswith(text)), key=len, default="")
        number, _, after = rest[len(start) :].partition("_")
        if not start or not number.isdecimal():
            return ()
        fused.append(by_prefix[start])
        rest = after
    return tuple(fused)


def _refuse_inner(graph: Graph, name: str, route: Route) -> None:
    """Raises ProjectError for a node in a body of a Loop, If or Scan."""
    for node in graph.nodes():
        for way, inner in inside(node):
            if name in (way, inner.name):
                message = f"`{name}` is in a body of `{node.name}`, which runs as a whole"
                raise ProjectError(message, route, f"name the {node.op_type} itself, `{node.name}`")


def _all_names(graph: Graph) -> Iterable[str]:
    nodes = graph.nodes()
    trained = {name for node in nodes for name in origin(node)}
    return trained | {str(node.name) for node in nodes} | {str(v.name) for v in graph.inputs}


def _behind(graph: Graph, start: SelectedNodes) -> tuple[Node, ...]:
    reached = {*start.inputs, *(value for node in start.nodes for value in node.outputs)}
    behind = []
    for node in graph.nodes():
        if not reached.isdisjoint(reads(node)):
            behind.append(node)
            reached.update(node.outputs)
    return tuple(behind)


def _of_operator(graph: Graph, op_type: str, route: Route) -> tuple[Node, ...]:
    selected = [node for node in graph.nodes() if op_type in (node.op_type, *_parts(node))]
    if not selected and not is_operator(op_type):
        hint = did_you_mean(op_type, {node.op_type for node in graph.nodes()})
        raise ProjectError(f"there is no operator `{op_type}`", route, hint)
    return tuple(selected)


def _parts(node: Node) -> tuple[str, ...]:
    """The operators of the trained model that a target's form fuses into one node."""
    return SPELLED_OUT[SILU] if node.op_type == SILU else ()


def _between(names: GraphNames, start: str, end: str, route: Route) -> tuple[Node, ...]:
    graph = names.graph
    first = [_start(names, name, route) for name in start.split(", ")]
    last = [_exactly(names, name, route) for name in end.split(", ")]
    nodes = tuple(node for selected in first for node in selected.nodes)
    values = tuple(value for selected in first for value in selected.inputs)
    reached = {*nodes, *_behind(graph, SelectedNodes(nodes, values))}
    needed = {node for selected in last for node in selected.nodes}
    for node in reversed(graph.nodes()):
        if any(use.node in needed for value in node.outputs for use in value.uses()):
            needed.add(node)
    return tuple(node for node in graph.nodes() if node in reached and node in needed)


def _start(names: GraphNames, name: str, route: Route) -> SelectedNodes:
    """As `_exactly`, but a tensor selects itself and not its producer."""
    selected, value = _exactly(names, name, route), names.values.get(name)
    return selected if value is None or names.find(name) else SelectedNodes((), (value,))
