"""Nodes that give what they are given: Identity, Dropout at inference, Cast to the same type,
and a Reshape, Flatten or Transpose that changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.graph import Graph, Node, array, attribute


def drop_identity(graph: Graph) -> int:
    return sum(
        graph.bypass(node) for node in graph.nodes(*IDENTITIES) if IDENTITIES[node.op_type](node)
    )


def _keeps_shape(node: Node) -> bool:
    given, made = node.inputs[0], node.outputs[0]
    if given is None or given.shape is None or made.shape is None:
        return False
    static = all(isinstance(dim, int) for dim in (*given.shape, *made.shape))
    return static and tuple(given.shape) == tuple(made.shape)


def _keeps_type(node: Node) -> bool:
    given, made = node.inputs[0], node.outputs[0]
    return given is not None and given.dtype is not None and given.dtype == made.dtype


def _is_inference(node: Node) -> bool:
    """A Dropout that is not told to train, and whose mask nobody reads."""
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        training = array(node.inputs[2])
        if training is None or training.any():
            return False
    return all(not value.uses() and not value.is_graph_output() for value in node.outputs[1:])


def _keeps_order(node: Node) -> bool:
    order = attribute(node, "perm")
    return order is not None and tuple(order) == tuple(range(len(order)))


IDENTITIES: dict[str, Callable[[Node], bool]] = {
    "Cast": _keeps_type,
    "Dropout": _is_inference,
    "Flatten": _keeps_shape,
    "Identity": lambda _: True,
    "Reshape": _keeps_shape,
    "Transpose": _keeps_order,
}
