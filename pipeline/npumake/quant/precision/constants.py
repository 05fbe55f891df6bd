"""The grid of a constant that is added or multiplied like an activation.

A constant a of a sum is cut where the sum saturates for every value of the other operand b:

    y = a + b      y_low - b_high  <= a <=  y_high - b_low
    y = a - b      y_low + b_low   <= a <=  y_high + b_high
    y = b - a      b_low - y_high  <= a <=  b_high - y_low

A mask of -1e9 thus leaves its codes to the visible values. In a Concat the constant is cut to the
range of y; as a factor of b, to the value at which one code of b saturates, |a| <= max|y| / s_b. A
constant of zeros has no scale of its own: it takes that of the sum, or in a product the scale that
makes the factor s_a * s_b / s_y one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npumake.graph import Node
from npumake.graph.qdq import Grid
from npumake.quant.precision.grids import MIN_RANGE, activation_grid
from npumake.quant.precision.scale_limits import (
    ADDED_BITS,
    Interval,
    largest,
    reach_of,
    with_least_scale,
)
from npumake.targets.target import Activations

SUMS = ("Add", "Concat", "Sub")


def operand_grid(
    node: Node,
    index: int,
    values: np.ndarray,
    around: Mapping[int, Grid],
    output: Grid | None,
    scheme: Activations,
) -> Grid:
    """The grid of constant input `index` of `node`.

    `around` are the grids of the inputs by index, `output` that of the result, if known.
    """
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if output is None:
        return activation_grid(low, high, scheme)
    others = [grid for at, grid in around.items() if at != index]
    if node.op_type in SUMS:
        min_scale, max_scale = _within(
            node, index, reach_of(output), [reach_of(other) for other in others]
        )
        low, high = max(low, min(min_scale, 0.0)), min(high, max(max_scale, 0.0))
    if node.op_type == "Mul" and others:
        max_scale = largest(output) / float(others[0].scale)
        low, high = max(low, -max_scale), min(high, max_scale)
    if high - low >= MIN_RANGE:
        grid = activation_grid(low, high, scheme)
        least_scale = float(output.scale) * 2.0**-ADDED_BITS if node.op_type in SUMS else 0.0
        return with_least_scale(grid, least_scale, scheme.power_of_two)
    top = _neutral(node, output, others) * float(np.iinfo(scheme.dtype).max)
    return activation_grid(-top, top, scheme)


def _within(node: Node, index: int, output: Interval, others: list[Interval]) -> Interval:
    if node.op_type == "Concat" or not others:
        return output
    (low, high), (b_low, b_high) = output, others[0]
    if node.op_type == "Add":
        return low - b_high, high - b_low
    return (low + b_low, high + b_high) if index == 0 else (b_low - high, b_high - low)


def _neutral(node: Node, output: Grid, others: list[Grid]) -> float:
    """The scale of a constant of zeros."""
    scale = float(output.scale)
    if node.op_type in SUMS or not others:
        return scale
    return scale / float(others[0].scale)
