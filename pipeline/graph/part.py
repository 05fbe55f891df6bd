"""A part of a graph as a model of its own, and what a node reads and makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from pipeline.graph.graph import Graph, Node, Value


def reads(node: Node) -> tuple[Value, ...]:
    """The values of the graph that a node reads, each once; by its branches and bodies too."""
    bodies = [
        body
        for held in node.attributes.values()
        if isinstance(held, ir.Attr)
        for body in _graphs(held)
    ]
    captured = [
        value
        for body in bodies
        for inner in ir.traversal.RecursiveGraphIterator(body)
        for value in inner.inputs
        if value is not None and value.graph is node.graph
    ]
    given = [value for value in node.inputs if value is not None]
    return tuple(dict.fromkeys((*given, *captured)))


def part(graph: Graph, nodes: Sequence[Node], made: Iterable[Value]) -> Graph:
    """A model of these nodes, in order, that gives `made`: what they read is fed or constant."""
    inside = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(value for node in nodes for value in reads(node) if value not in inside)
    twins = {value: _twin(value) for value in (*read, *inside)}
    copies = [
        ir.Node(
            node.domain,
            node.op_type,
            [None if value is None else twins[value] for value in node.inputs],
            node.attributes.values(),
            outputs=[twins[value] for value in node.outputs],
            name=node.name,
        )
        for node in nodes
    ]
    return Graph(
        ir.Model(
            ir.Graph(
                [twins[value] for value in read if value.const_value is None],
                [twins[value] for value in made],
                nodes=copies,
                initializers=[twins[value] for value in read if value.const_value is not None],
                opset_imports=graph.model.opset_imports,
                name=copies[0].name,
            ),
            ir_version=graph.model.ir_version,
        )
    )


def declare(value: Value, shape: Sequence[int], like: Value | None) -> None:
    """Say what a foreign node makes: a shape, and the element type of `like` where it has none."""
    value.shape = ir.Shape(shape)
    if value.dtype is None:
        found = None if like is None else like.dtype
        value.type = ir.TensorType(found or ir.DataType.FLOAT)


def _graphs(held: ir.Attr) -> Sequence[ir.Graph]:
    if held.type == ir.AttributeType.GRAPH:
        return [held.as_graph()]
    return held.as_graphs() if held.type == ir.AttributeType.GRAPHS else []


def _twin(value: Value) -> Value:
    """A value of the same name, type and content in another graph."""
    return ir.Value(
        name=value.name, type=value.type, shape=value.shape, const_value=value.const_value
    )
