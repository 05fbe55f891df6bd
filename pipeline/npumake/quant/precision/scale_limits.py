"""Scale limits: a scale too small for the fixed-point arithmetic is widened.

With R the largest real value that an accumulator may reach,

    Conv, Gemm, MatMul  R = max|x| * sum|w| + |b|
    Mul                 R = max|a| * max|b|
    data movement       R = max|x|

the output scale s is at least

    Add, Sub    s >= max(s_a, s_b) / 2**18, and of int16 / 2**13
    HardSwish   s >= s_x / 2**6
    else        s >= R / 2**30

A tensor that is only ever added has at least 2**-20 of every sum's scale: less vanishes. Each bound
is within those of LiteRT (2 * s_a < 2**20 * s for ADD, 2**15 of int16; s_x <= 2**7 * s for
HARD_SWISH; an accumulator shifted left is an int32) and of TOSA, whose shifts are 2 .. 62. Ordinary
scales are far from them. Constants are cut before (precision.constants).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.engine.fusion import result
from npumake.engine.rules import RULES
from npumake.graph import Node, Value, array, attribute, shape
from npumake.graph.qdq import Grid
from npumake.quant.precision.grids import Grids, power_of_two
from npumake.quant.precision.placement import activations, is_data_movement, source_tensor

SUM_BITS, WIDE_SUM_BITS = 18, 13
HARD_SWISH_BITS = 6
REACH_BITS = 30
ADDED_BITS = 20
CODES_8BIT = 256.0
SUMS = ("Add", "Sub")
LAYER_OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
SAME_REACH_OPERATORS = frozenset(
    {
        *("AveragePool", "Clip", "GlobalAveragePool", "LeakyRelu", "PRelu", "ReduceMean"),
        *("ReduceSum", "Relu"),
    }
)

Interval = tuple[float, float]


class _Bound(NamedTuple):
    """The least scales of a node's output, for 8 bits and for int16."""

    narrow: float
    wide: float


def limited_scales(
    nodes: Sequence[Node],
    grids: Mapping[str, Grids],
    power: tuple[bool, bool],
) -> dict[str, Grids]:
    """`grids`, by observed tensor of a float graph, with scales that its integer `nodes` can hold.

    `nodes` are in order; `power`: whether 8-bit and int16 scales are powers of two.
    """
    limited = dict(grids)
    for node in nodes:
        if is_data_movement(node) or node.op_type not in RULES:
            continue
        name = str(source_tensor(result(node)).name)
        if name in limited:
            limited[name] = _widened(limited[name], _scale_bound(node, limited), power)
    for name, bound in _least_added(nodes, limited).items():
        limited[name] = _widened(limited[name], _Bound(bound, bound), power)
    return limited


def _widened(grids: Grids, bound: _Bound, power: tuple[bool, bool]) -> Grids:
    return Grids(*(with_least_scale(*limits) for limits in zip(grids, bound, power, strict=True)))


def with_least_scale(grid: Grid, min_scale: float, power: bool = False) -> Grid:
    """`grid` with a scale of at least `min_scale`; the zero point stays."""
    if not grid.scale < min_scale or not math.isfinite(min_scale):
        return grid
    return Grid(
        np.array(power_of_two(min_scale) if power else min_scale, np.float32), grid.zero_point
    )


def largest(grid: Grid) -> float:
    """The largest magnitude of `reach_of`."""
    low, high = reach_of(grid)
    return max(-low, high)


def reach_of(grid: Grid) -> Interval:
    """The real values of the lowest and highest code, one step further on either side."""
    limits = np.iinfo(grid.zero_point.dtype)
    zero, scale = int(grid.zero_point), float(grid.scale)
    return scale * (limits.min - zero - 1), scale * (limits.max - zero + 1)


def _scale_bound(node: Node, grids: Mapping[str, Grids]) -> _Bound:
    if node.op_type in SUMS:
        read = max(_scale(value, grids) for value in activations(node))
        return _Bound(read * 2.0**-SUM_BITS, read * 2.0**-WIDE_SUM_BITS)
    if node.op_type == "HardSwish":
        min_scale = _scale(node.inputs[0], grids) * 2.0**-HARD_SWISH_BITS
    else:
        min_scale = _reach(node, grids) * 2.0**-REACH_BITS
    return _Bound(min_scale, min_scale)


def _constant_reach(node: Node, grids: Mapping[str, Grids]) -> float:
    """The limit of a product by a constant: the constant is cut so that one code of the other
    factor saturates."""
    grid = _grid(result(node), grids)
    return math.inf if grid is None or len(activations(node)) > 1 else largest(grid)


def _reach(node: Node, grids: Mapping[str, Grids]) -> float:
    """R; 0 for an output from a table."""
    first, second = ([*node.inputs, None])[:2]
    top = _largest(first, grids)
    if node.op_type in SAME_REACH_OPERATORS:
        return top
    if node.op_type == "Mul":
        return min(top * _largest(second, grids), CODES_8BIT * _constant_reach(node, grids))
    if node.op_type == "Div":
        return top / scale if (scale := _scale(second, grids)) else 0.0
    if node.op_type not in LAYER_OPERATORS or first is None:
        return 0.0
    weight = array(second)
    if weight is None:
        return top * _largest(second, grids) * shape(first)[-1]
    bias = array(node.inputs[2]) if len(node.inputs) > 2 else None
    return top * _summed(node, weight) + float(np.abs(bias).max() if bias is not None else 0.0)


def _summed(node: Node, weight: np.ndarray) -> float:
    """The largest sum |w| of an output channel."""
    sizes = np.abs(weight.astype(np.float64))
    if node.op_type == "Conv" or attribute(node, "transB", 0):
        return float(sizes.reshape(len(sizes), -1).sum(axis=1).max(initial=0.0))
    return float(sizes.reshape(len(sizes), -1).sum(axis=0).max(initial=0.0) * _taps(node, weight))


def _taps(node: Node, weight: np.ndarray) -> int:
    return math.prod(weight.shape[2:]) if node.op_type == "ConvTranspose" else 1


def _largest(value: Value | None, grids: Mapping[str, Grids]) -> float:
    """The largest magnitude of a value."""
    constant = array(value)
    if constant is not None:
        return float(np.abs(constant).max(initial=0.0))
    grid = _grid(value, grids)
    if grid is None:
        return 0.0
    limits, zero = np.iinfo(grid.zero_point.dtype), int(grid.zero_point)
    return float(grid.scale) * max(limits.max - zero, zero - limits.min)


def _scale(value: Value | None, grids: Mapping[str, Grids]) -> float:
    """The scale of a value; of a constant, that of its own symmetric grid."""
    constant = array(value)
    if constant is not None:
        return float(np.abs(constant).max(initial=0.0)) / 127.0
    grid = _grid(value, grids)
    return 0.0 if grid is None else float(grid.scale)


def _grid(value: Value | None, grids: Mapping[str, Grids]) -> Grid | None:
    value_grids = None if value is None else grids.get(str(source_tensor(value).name))
    return None if value_grids is None else value_grids.narrow


def _least_added(nodes: Sequence[Node], grids: Mapping[str, Grids]) -> dict[str, float]:
    """The least scale that shows in a sum, by tensors that are only ever added."""
    least_scales: dict[str, float] = {}
    for node in nodes:
        if is_data_movement(node):
            continue
        output = grids.get(str(source_tensor(result(node)).name))
        is_sum = node.op_type in (*SUMS, "Concat") and output is not None
        min_scale = (
            float(output.narrow.scale) * 2.0**-ADDED_BITS if output is not None and is_sum else 0.0
        )
        for value in activations(node):
            name = str(source_tensor(value).name)
            if name in grids:
                least_scales[name] = min(least_scales.get(name, math.inf), min_scale)
    return {name: min_scale for name, min_scale in least_scales.items() if min_scale > 0}
