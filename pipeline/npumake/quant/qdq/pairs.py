"""A pair of Q and DQ: it rounds a tensor to the values of a grid."""

from __future__ import annotations

from typing import NamedTuple

from npumake.graph import Graph, Node, Value, declare, producer, shape
from npumake.quant.precision.grids import Grid

Q, DQ = "QuantizeLinear", "DequantizeLinear"


class QDQPair(NamedTuple):
    """The output of a Q, and of the DQ behind it."""

    codes: Value
    real: Value


def pair(
    graph: Graph,
    value: Value,
    grid: Grid,
    name: str,
    *,
    axis: int | None = None,
    before: Node | None = None,
) -> QDQPair:
    """Inserts Q and DQ behind `value`, named after `name`.

    A constant has no producer: its pair stands `before` the reading node.
    """
    scale = graph.constant(f"{name}_scale", grid.scale)
    zero_point = graph.constant(f"{name}_zero_point", grid.zero_point)
    inputs = [value, scale, zero_point]
    codes = graph.insert(Q, inputs, f"{name}_quantized", producer(value), before=before, axis=axis)
    inputs = [codes, scale, zero_point]
    real = graph.insert(DQ, inputs, f"{name}_dequantized", producer(codes), axis=axis)
    if value.shape is not None:
        declare(codes, shape(value), zero_point)
        declare(real, shape(value), scale)
    return QDQPair(codes, real)
