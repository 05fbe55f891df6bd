"""The activation that a node fuses: its requantization clamps to the activation's bounds."""

from __future__ import annotations

from typing import NamedTuple

from npumake.graph import Node, Value, array, is_given, only_consumer

CLAMPS = frozenset({"Relu", "Clip"})
# Operators with a requantization of their own, where a clamp is free.
ABSORBING = frozenset(
    {
        "Add",
        "AveragePool",
        "Concat",
        "Conv",
        "ConvTranspose",
        "Div",
        "Gemm",
        "GlobalAveragePool",
        "LayerNormalization",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "ReduceMean",
        "ReduceSum",
        "Sub",
    }
)


class Bounds(NamedTuple):
    """The real interval of a clamp; None for an open end."""

    low: float | None
    high: float | None


def bounds(activation: Node | None) -> Bounds:
    """The interval of a Relu or Clip; unbounded for None."""
    if activation is None:
        return Bounds(None, None)
    if activation.op_type == "Relu":
        return Bounds(0.0, None)
    low, high = (_scalar(activation, index) for index in (1, 2))
    return Bounds(low, high)


def is_clamp(node: Node | None) -> bool:
    """Whether the node is a Relu, or a Clip with constant bounds."""
    if node is None or node.domain or node.op_type not in CLAMPS:
        return False
    return all(is_given(value) for value in node.inputs[1:] if value is not None)


def absorbed(node: Node) -> Node | None:
    """The clamp that is the only reader of the node's only output; the node computes it."""
    if node.domain or node.op_type not in ABSORBING:
        return None
    reader = only_consumer(node.outputs[0])
    return reader if is_clamp(reader) else None


def result(node: Node) -> Value:
    """The output of the node, after its fused clamp."""
    clamp = absorbed(node)
    return (clamp or node).outputs[0]


def _scalar(node: Node, index: int) -> float | None:
    values = array(node.inputs[index]) if index < len(node.inputs) else None
    return None if values is None else float(values.reshape(-1)[0])
