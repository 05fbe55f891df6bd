"""Ends a model earlier, or removes nodes at its border.

A node is at the border if it alone reads a graph input, or if it computes a graph output that no
other node reads. A node with several computed inputs or outputs is not on a single path. Each
removal may bring the next node to the border.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.errors import GraphError, ProjectError, Route, did_you_mean
from npumake.graph import Graph, Node, Value, array
from npumake.graph.qdq import DEQUANTIZE, QUANTIZE

# Vendors' operator names → ONNX operators.
_OPERATORS = {"Quantize": QUANTIZE, "Dequantize": DEQUANTIZE}


def end_at(graph: Graph, names: Sequence[str]) -> None:
    """Makes these tensors, or the outputs of these nodes, the model's outputs, in this order.

    Nodes and inputs that only later nodes need are dropped. Raises ProjectError for an unknown
    name and for one that comes twice.
    """
    values, nodes = graph.values(), {str(node.name): node for node in graph.nodes()}
    computed = {name: value for name, value in values.items() if value.producer() is not None}
    outputs: list[Value] = []
    for index, name in enumerate(names):
        ends = [computed[name]] if name in computed else _results(nodes, name)
        if not ends or any(end in outputs for end in ends):
            message = (
                "is an output already" if ends else "is neither a node nor a tensor it computes"
            )
            hint = "" if ends else did_you_mean(name, {*computed, *nodes})
            raise ProjectError(f"`{name}` {message}", Route(f"model.outputs.{index}"), hint)
        outputs += ends
    needed_before = [value for value in graph.inputs if value.uses()]
    graph.expose(str(value.name) for value in outputs)
    graph.drop_unused()
    for value in needed_before:
        if not value.uses():
            graph.drop_input(value)


def _results(nodes: dict[str, Node], name: str) -> list[Value]:
    return [value for value in nodes[name].outputs if value.name] if name in nodes else []


def remove_types(graph: Graph, types: Sequence[str]) -> int:
    """Removes nodes of each type at the border, repeatedly, and returns their number.

    Nodes inside the model stay, as in the vendors' tools. Shapes must be known.
    """
    removed = 0
    for kind in types:
        while node := _first_at_border(graph, _OPERATORS.get(kind, kind)):
            _remove(graph, node)
            removed += 1
    return removed


def remove_node(graph: Graph, name: str, where: Route) -> None:
    """Removes one node at the border. Shapes must be known.

    Raises ProjectError at `where`, with the reason, if that is impossible.
    """
    nodes = {str(node.name): node for node in graph.nodes()}
    if name not in nodes:
        raise ProjectError(f"the model has no node `{name}`", where, did_you_mean(name, nodes))
    if reason := obstacle(nodes[name]):
        hint = "only a node at the border on a single path can be removed"
        raise ProjectError(f"`{name}` cannot be removed: {reason}", where, hint)
    _remove(graph, nodes[name])


def obstacle(node: Node) -> str:
    """Why the node cannot be removed; empty if it can."""
    inputs = [value for value in node.inputs if value is not None and array(value) is None]
    outputs = [value for value in node.outputs if value.uses() or value.is_graph_output()]
    if len(inputs) != 1 or len(outputs) != 1:
        return f"it has {len(inputs)} computed inputs and {len(outputs)} outputs"
    (source,), (result,) = inputs, outputs
    if node.inputs[0] is not source:
        return "it does not compute with only its first input"
    if source.is_graph_input() and result.is_graph_output():
        return "it joins an input to an output"
    if source.is_graph_input():
        alone = len(tuple(source.uses())) == 1
        return "" if alone else f"others read `{source.name}` too"
    if not result.is_graph_output():
        return "it is inside the model"
    if result.uses():
        return f"others read `{result.name}` too"
    return f"`{source.name}` is an output already" if source.is_graph_output() else ""


def _first_at_border(graph: Graph, op_type: str) -> Node | None:
    return next((node for node in graph.nodes(op_type) if not obstacle(node)), None)


def _remove(graph: Graph, node: Node) -> None:
    """Keeps the public name of the input or output. Raises GraphError for an unknown shape."""
    source = node.inputs[0]
    assert source is not None
    if source.is_graph_input():
        if node.outputs[0].shape is None:
            raise GraphError(f"the shape of `{node.outputs[0].name}` is not known", str(node.name))
        graph.feed_past(node, source)
    else:
        graph.bypass(node)
