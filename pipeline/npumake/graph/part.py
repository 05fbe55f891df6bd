"""Extracts part of a graph as a model, lists the inputs of nodes, and sets shapes of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir

from npumake.graph.graph import Graph, Node, Value

SIZED_BY_NUMBERS = (
    "CenterCropPad",
    "ConstantOfShape",
    "Expand",
    "OneHot",
    "Pad",
    "Range",
    "Resize",
    "Tile",
    "Upsample",
)


def reads(node: Node) -> tuple[Value, ...]:
    """The values that a node reads, also in its branches and bodies, each once."""
    read = (*node.inputs, *(value for body in _bodies(node) for value in _looked_up(body)))
    own = (value for value in read if value is not None and value.graph is node.graph)
    return tuple(dict.fromkeys(own))


def part(graph: Graph, nodes: Sequence[Node], results: Iterable[Value]) -> Graph:
    """A model of these nodes, in order, with the outputs `results`. Its inputs and constants are
    what the nodes read from outside.

    Nodes may come from several graphs of the same opsets; names identify values.
    """
    inside = {value.name: value for node in nodes for value in node.outputs}
    read = {value.name: value for node in nodes for value in reads(node)}
    outside = {name: value for name, value in read.items() if name not in inside}
    twins = {name: _twin(value) for name, value in (outside | inside).items()}
    copies = [
        ir.Node(
            node.domain,
            node.op_type,
            [None if value is None else twins[value.name] for value in node.inputs],
            node.attributes.values(),
            outputs=[twins[value.name] for value in node.outputs],
            name=node.name,
            metadata_props=node.metadata_props,
        )
        for node in nodes
    ]
    return Graph(
        ir.Model(
            ir.Graph(
                [twins[name] for name, value in outside.items() if value.const_value is None],
                [twins[value.name] for value in results],
                nodes=copies,
                initializers=[
                    twins[name] for name, value in outside.items() if value.const_value is not None
                ],
                opset_imports=graph.model.opset_imports,
                name=copies[0].name,
            ),
            ir_version=graph.model.ir_version,
        )
    )


def declare(value: Value, shape: Sequence[int], like: Value | None) -> None:
    """Sets the shape of a foreign node's output, and its element type to that of `like` if
    unknown."""
    value.shape = ir.Shape(shape)
    if value.dtype is None:
        element = None if like is None else like.dtype
        value.type = ir.TensorType(element or ir.DataType.FLOAT)


def complete(graph: Graph) -> Graph:
    """The graph with shapes and types; inferred only if one is missing. Inference takes as long as
    the rest of placing a graph on grids."""
    outputs = (value for node in graph.nodes() for value in node.outputs)
    if all(value.shape is not None and value.type is not None for value in outputs):
        return graph
    return graph.with_shapes()


def derived(graph: Graph) -> Graph:
    """A copy with re-inferred shapes, for files whose computed values could make a tensor larger
    than declared. Such a shape is open unless constants determine it. Raises GraphError."""
    copy = graph.copy()
    for node in copy.nodes(*SIZED_BY_NUMBERS):
        for value in node.outputs:
            value.shape = None
    return copy.with_shapes()


def inside(node: Node, way: str = "") -> Iterator[tuple[str, Node]]:
    """The nodes in the bodies of a node, recursively, each with its path: loop/branch/add.

    Their names may be missing, or not unique in the model.
    """
    for body in _bodies(node):
        for inner in body:
            called = f"{way or node.name}/{inner.name or inner.outputs[0].name}"
            yield called, inner
            yield from inside(inner, called)


def _looked_up(body: ir.Graph) -> Iterator[Value | None]:
    """The values that a body reads or returns, nested bodies included."""
    for node in body:
        yield from node.inputs
        for inner in _bodies(node):
            yield from _looked_up(inner)
    yield from body.outputs


def _bodies(node: Node) -> list[ir.Graph]:
    """The graphs among the attributes: two of an If, one of a Loop."""
    attributes = [item for item in node.attributes.values() if isinstance(item, ir.Attr)]
    single = [item.as_graph() for item in attributes if item.type == ir.AttributeType.GRAPH]
    many = [item.as_graphs() for item in attributes if item.type == ir.AttributeType.GRAPHS]
    return [*single, *(body for bodies in many for body in bodies)]


def _twin(value: Value) -> Value:
    """A value of the same name, type and content for another graph."""
    return ir.Value(
        name=value.name, type=value.type, shape=value.shape, const_value=value.const_value
    )
