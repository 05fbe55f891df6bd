"""Dequantizes parameters that a quantizer stored as codes.

The scale of a normalization, or the table of a Gather, is neither a weight nor an operand, and
nothing computes on its codes. Folding its DQ lets other passes see the values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.graph import Graph, Node, Value, array, attribute, producer
from npumake.kernels import affine

Q, DQ = "QuantizeLinear", "DequantizeLinear"


def real_parameters(graph: Graph) -> int:
    count = 0
    for node in graph.nodes():
        if node.op_type in (Q, DQ) or node.op_type in CONSTANT_OPERANDS:
            continue
        weights = RULES[node.op_type].weights if node.op_type in RULES else ()
        for index, value in enumerate(tuple(node.inputs)):
            real = None if index in weights else _dequantized(value)
            if real is not None and value is not None:
                graph.set_inputs(node, {index: graph.constant(f"{value.name}_real", real)})
                count += 1
    return count


def _dequantized(value: Value | None) -> np.ndarray | None:
    """None unless the value is a constant behind a DQ with a constant scale."""
    grid = _grid(value, DQ)
    if grid is None:
        return None
    codes = array(grid.read)
    if codes is None:
        codes = _codes(grid.read)
    return None if codes is None else affine.dequantize(codes, *grid.broadcast(codes.ndim))


def _codes(value: Value | None) -> np.ndarray | None:
    """The codes of constant floats behind a Q."""
    grid = _grid(value, Q)
    real = None if grid is None else array(grid.read)
    if grid is None or real is None or not np.isfinite(real).all():
        return None
    limits = np.iinfo(grid.zero_point.dtype)
    return affine.quantize(real, *grid.broadcast(real.ndim), limits.min, limits.max)


class _Grid(NamedTuple):
    """Input, scale, zero point and axis of a Q or DQ."""

    read: Value | None
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int

    def broadcast(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        scale, zero_point = (
            affine.per_axis(parameter, rank, self.axis)
            for parameter in (self.scale, self.zero_point)
        )
        return scale, zero_point


def _grid(value: Value | None, op_type: str) -> _Grid | None:
    maker: Node | None = None if value is None else producer(value)
    if maker is None or maker.op_type != op_type or maker.domain or len(maker.inputs) < 3:
        return None
    scale, zero_point = array(maker.inputs[1]), array(maker.inputs[2])
    if scale is None or zero_point is None or attribute(maker, "block_size", 0):
        return None
    return _Grid(maker.inputs[0], scale, zero_point, attribute(maker, "axis", 1))
