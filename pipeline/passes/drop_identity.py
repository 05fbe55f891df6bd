"""Nodes that give what they are given: Identity, Dropout at inference, Cast to the same type,
and a Reshape or Transpose that changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.graph import Graph, Node, attribute


def drop_identity(graph: Graph) -> int:
    return sum(graph.bypass(node) for node in graph.nodes() if _is_identity(node))


def _is_identity(node: Node) -> bool:
    test = IDENTITIES.get(node.op_type)
    return test is not None and node.inputs[0] is not None and test(node)


def _keeps_shape(node: Node) -> bool:
    given, made = node.inputs[0], node.outputs[0]
    if given is None or given.shape is None or made.shape is None:
        return False
    static = all(isinstance(dim, int) for dim in (*given.shape, *made.shape))
    return static and tuple(given.shape) == tuple(made.shape)


def _keeps_type(node: Node) -> bool:
    return node.inputs[0] is not None and node.inputs[0].dtype == node.outputs[0].dtype


def _mask_unread(node: Node) -> bool:
    return all(not value.uses() and not value.is_graph_output() for value in node.outputs[1:])


def _keeps_order(node: Node) -> bool:
    order = attribute(node, "perm")
    return order is not None and tuple(order) == tuple(range(len(order)))


IDENTITIES: dict[str, Callable[[Node], bool]] = {
    "Cast": _keeps_type,
    "Dropout": _mask_unread,
    "Flatten": _keeps_shape,
    "Identity": lambda _: True,
    "Reshape": _keeps_shape,
    "Transpose": _keeps_order,
}
