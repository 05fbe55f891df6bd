"""A node taken out of its graph, with all that it reads."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def alone(model: ir.Model, node: ir.Node) -> ir.Model:
    """A model of this one node: what it reads is fed or constant, what it makes is given.

    What its branches and loop bodies read of the graph around them counts as read.
    """
    read = [v for v in dict.fromkeys((*node.inputs, *_captured(node))) if v is not None]
    fed = [_twin(value) for value in read if value.const_value is None]
    constants = [_twin(value) for value in read if value.const_value is not None]
    twins = {str(value.name): value for value in (*fed, *constants)}
    made = [_twin(value) for value in node.outputs]
    twin = ir.Node(
        node.domain,
        node.op_type,
        [None if value is None else twins[str(value.name)] for value in node.inputs],
        node.attributes.values(),
        outputs=made,
        name=node.name,
    )
    graph = ir.Graph(
        fed,
        made,
        nodes=[twin],
        initializers=constants,
        opset_imports=model.opset_imports,
        name=node.name,
    )
    return ir.Model(graph, ir_version=model.ir_version)


def _captured(node: ir.Node) -> Iterator[ir.Value]:
    for body in _bodies(node):
        inner = list(body.all_nodes())
        own = {value for made in inner for value in made.outputs}
        for graph in (body, *(deeper for made in inner for deeper in _bodies(made))):
            own.update((*graph.inputs, *graph.initializers.values()))
        read = [value for reader in inner for value in reader.inputs if value is not None]
        yield from (value for value in (*read, *body.outputs) if value not in own)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    """The graphs among its attributes: two of an If, one of a Loop."""
    held = node.attributes.values()
    return [given.as_graph() for given in held if given.type == ir.AttributeType.GRAPH]


def _twin(value: ir.Value) -> ir.Value:
    """A value of the same name, type and content in another graph."""
    return ir.Value(
        name=value.name, type=value.type, shape=value.shape, const_value=value.const_value
    )
