"""Saturation points: where a range may end because its readers saturate.

    Softmax along n   x may end at  peak - D,  D = ln(2 * LEVELS * n): all n lower values together
                      weigh less than half a code, even in the row with the least maximum
    y = a + b         a may end at  l - max b  and  h - min b,  where y may at l and h; so for y - b
    y = c * a, c > 0  a may end at  l / c  and  h / c
    Where, Concat     inputs may end where the output does

A tensor with several readers ends at the furthest point. A mask of -1e9, the lowest float32 or
-infinity thus ends a few units below the scores, and leaves the codes to them.

A range is cut only if more is removed than remains: values that far away come from a mask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, shape
from npumake.quant.calibration.softmax_inputs import masked_softmaxes
from npumake.quant.precision.placement import is_data_movement, source_tensor

LEVELS8, LEVELS16 = 255, 32767
MAX_REMAINING_SHARE = 0.5  # a range is cut only if less than this share remains

Interval = tuple[float, float]
Ends = dict[Value, Interval]
UNBOUNDED: Interval = (-math.inf, math.inf)


def saturated_ranges(
    graph: Graph, peaks: Mapping[str, float], ranges: Mapping[str, Interval], levels: int
) -> dict[str, Interval]:
    """The ranges that shrink, by observed tensor of the float `graph`, for grids with `levels`
    levels."""
    if not peaks:
        return {}
    cuts: dict[str, Interval] = {}
    for value, (low, high) in _ends(graph, peaks, ranges, levels).items():
        name = str(value.name)
        if name in ranges:
            (min_low, max_high), limits = ranges[name], (low, high)
            cut = (min(max(min_low, limits[0]), max_high), max(min(max_high, limits[1]), min_low))
            if _span(cut) < MAX_REMAINING_SHARE * _span((min_low, max_high)):
                cuts[name] = cut
    return cuts


def _span(interval: Interval) -> float:
    low, high = interval
    return max(high, 0.0) - min(low, 0.0)


def _ends(
    graph: Graph, peaks: Mapping[str, float], ranges: Mapping[str, Interval], levels: int
) -> Ends:
    """By tensor, the interval in which its readers do not saturate."""
    softmaxes = set(masked_softmaxes(graph))
    ends: Ends = {}
    for value in graph.outputs:
        ends[source_tensor(value)] = UNBOUNDED
    for node in reversed(graph.nodes()):
        if is_data_movement(node):
            continue
        for index, read in enumerate(node.inputs):
            if read is None or array(read) is not None:
                continue
            own = source_tensor(read)
            if node in softmaxes:
                interval = _scores(node, own, peaks, ranges, levels)
            else:
                interval = _operand(node, index, ends, ranges)
            ends[own] = _hull(ends[own], interval) if own in ends else interval
    return {value: end for value, end in ends.items() if end != UNBOUNDED}


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _scores(
    node: Node,
    x: Value,
    peaks: Mapping[str, float],
    ranges: Mapping[str, Interval],
    levels: int,
) -> Interval:
    peak = peaks.get(str(x.name))
    if peak is None:
        return UNBOUNDED
    among = shape(node.outputs[0])[attribute(node, "axis", -1)]
    return peak - math.log(2 * levels * max(among, 1)), math.inf


def _operand(node: Node, index: int, ends: Ends, ranges: Mapping[str, Interval]) -> Interval:
    """Where input `index` may end, if the node's output may end somewhere."""
    low, high = ends.get(source_tensor(node.outputs[0]), UNBOUNDED) if node.outputs else UNBOUNDED
    if (low, high) == UNBOUNDED or node.domain:
        return UNBOUNDED
    if node.op_type == "Concat" or (node.op_type == "Where" and index > 0):
        return low, high
    if node.op_type in ("Add", "Sub"):
        b_low, b_high = _range(node.inputs[1 - index], ranges)
        if node.op_type == "Add":
            return low - b_high, high - b_low
        return (low + b_low, high + b_high) if index == 0 else (b_low - high, b_high - low)
    factor = _factor(node, index)
    return (low / factor, high / factor) if factor else UNBOUNDED


def _range(value: Value | None, ranges: Mapping[str, Interval]) -> Interval:
    constant = array(value)
    if constant is not None:
        return float(constant.min()), float(constant.max())
    return ranges.get("" if value is None else str(source_tensor(value).name), UNBOUNDED)


def _factor(node: Node, index: int) -> float | None:
    """The positive constant by which the node multiplies its input."""
    if node.op_type not in ("Div", "Mul") or (node.op_type == "Div" and index == 1):
        return None
    constant = array(node.inputs[1 - index])
    if constant is None or constant.size != 1 or not np.isfinite(constant).all():
        return None
    number = float(constant.reshape(-1)[0])
    if not number > 0:
        return None
    return number if node.op_type == "Mul" else 1.0 / number
