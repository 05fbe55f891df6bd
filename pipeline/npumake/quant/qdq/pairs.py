"""A pair of Q and DQ: the values of a tensor, as far as a grid has them."""

from __future__ import annotations

from typing import NamedTuple

from npumake.graph import Graph, Node, Value, declare, producer, shape
from npumake.quant.precision.grids import Grid

Q, DQ = "QuantizeLinear", "DequantizeLinear"


class QDQPair(NamedTuple):
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
    """Q and DQ behind `value`, called after `name`.

    A constant has no node to stand behind: its pair stands `before` the node that reads it.
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
