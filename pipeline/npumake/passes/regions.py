"""Regions: connected elementwise nodes, whose axes can be permuted together."""

from __future__ import annotations

from npumake.engine.functions import FUNCTIONS
from npumake.graph import Node, Value, array, producer
from npumake.graph.qdq import QDQ_OPERATORS

ELEMENTWISE = frozenset(
    {
        *FUNCTIONS,
        *QDQ_OPERATORS,
        *("Add", "Cast", "Ceil", "Clip", "Concat", "Cos", "Div", "Floor"),
        *("Identity", "Log", "Max", "Min", "Mul", "Pow", "PRelu", "Reciprocal"),
        *("Relu", "Round", "Sin", "Sqrt", "Sub"),
    }
)
# Inputs from this index on are parameters.
PARAMETERS = dict.fromkeys(("Clip", *QDQ_OPERATORS), 1)


def region(start: Node) -> dict[Node, None]:
    """The elementwise nodes of equal rank connected with `start`, in order of discovery."""
    members, waiting, start_rank = {start: None}, [start], rank(start)
    while waiting:
        node = waiting.pop()
        makers = [producer(value) for value in operands(node)]
        readers = [use.node for use in node.outputs[0].uses()]
        for near in (*makers, *readers):
            if near is None or near in members or near.graph is not start.graph:
                continue
            if rank(near) == start_rank:
                members[near] = None
                waiting.append(near)
    return members


def rank(node: Node) -> int | None:
    """The common rank of an elementwise node's inputs and output; None for other nodes."""
    if node.op_type not in ELEMENTWISE or node.domain or len(node.outputs) != 1:
        return None
    out_shape = node.outputs[0].shape
    if out_shape is None:
        return None
    if node.op_type in PARAMETERS and not _is_scalar(node):
        return None
    for value in operands(node):
        low = (
            array(value) is not None
            and value.shape is not None
            and len(value.shape) < len(out_shape)
        )
        if value.shape is None or (len(value.shape) != len(out_shape) and not low):
            return None
    return len(out_shape)


def _is_scalar(node: Node) -> bool:
    """Whether all its parameters are scalars."""
    parameters = (array(value) for value in node.inputs[1:] if value is not None)
    return all(values is not None and values.size == 1 for values in parameters)


def operands(node: Node) -> list[Value]:
    end = PARAMETERS.get(node.op_type, len(node.inputs))
    return [value for value in node.inputs[:end] if value is not None]
