"""The range of each tensor: what was measured, saturated where the calibration's method says.

What a Sigmoid answers reaches further up (calibration.scores). What a Softmax reads, and the mask
in it, ends where the exponential does (calibration.endings). A range of nothing is its neighbour's
(calibration.empty).

moving_average follows the extremes from sample to sample, e <- m * e + (1 - m) * e_i, and starts
with those of the first. All other methods choose a threshold (calibration.thresholds).

Nothing is taken off the answers of the model. A threshold weighs values by how often they occur,
and in an answer the rare large ones are what was asked for: the one probability among a thousand,
the few boxes among thousands that hold something. (Nor did the inventors of kl: their outputs are
float.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph
from npumake.kernels.histogram import Histogram
from npumake.project.sections import Calibration
from npumake.quant.calibration.activation_aware_ranges import activation_aware_ranges
from npumake.quant.calibration.empty_ranges import neighbour_ranges
from npumake.quant.calibration.output_headroom import with_headroom
from npumake.quant.calibration.padded_ranges import padded_ranges
from npumake.quant.calibration.saturation_points import LEVELS8, LEVELS16, saturated_ranges
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.calibration.thresholds import threshold
from npumake.quant.precision.placement import output_tensors

MOVING_AVERAGE = "moving_average"
# What is fed later may be larger than all that was seen, and int16 has a bit to spare for it. Of
# 400 pictures two have logits of SqueezeNet a fifth above those of 100 others: cut off, the two
# classes that lead are alike.
HEADROOM = 2.0
# It has none where channels are so uneven that a quarter of them would have fewer codes than 8 bits
# have. In YOLOX-nano's stem, of channels from 0.1 to 150, a bit more is half of what is lost.
CODES16, CODES8 = 32767, 256
SMALL = 0.25


class Range(NamedTuple):
    low: float
    high: float


def ranges(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool = False
) -> dict[str, Range]:
    """The range of every tensor in `statistics`, those of the float `graph`, for grids with zero
    in the middle when `symmetric`."""
    whole = output_tensors(graph)
    by_tensor: dict[str, Range] = {}
    for name, measured in statistics.tensors.items():
        if name in whole:
            by_tensor[name] = Range(measured.low, measured.high)
        elif calibration.method == MOVING_AVERAGE:
            by_tensor[name] = _moving_average(statistics.samples[name], calibration.momentum)
        else:
            by_tensor[name] = _saturated(measured, threshold(measured, calibration, symmetric))
    by_tensor |= _as_ranges(saturated_ranges(graph, statistics.peaks, by_tensor, LEVELS8))
    by_tensor |= _as_ranges(activation_aware_ranges(graph, statistics.tensors, by_tensor))
    by_tensor |= _as_ranges(with_headroom(graph, by_tensor))
    by_tensor |= _as_ranges(padded_ranges(graph, by_tensor))
    return by_tensor | _as_ranges(neighbour_ranges(graph, by_tensor))


def int16_ranges(graph: Graph, statistics: Statistics) -> dict[str, Range]:
    """What int16 has codes for: what was measured of every tensor of the float `graph`, and up to
    HEADROOM times that as long as its smaller channels have CODES8 codes or more."""
    by_tensor: dict[str, Range] = {}
    for name, measured in statistics.tensors.items():
        room = _room(statistics.channels.get(name))
        by_tensor[name] = Range(room * measured.low, room * measured.high)
    by_tensor |= _as_ranges(saturated_ranges(graph, statistics.peaks, by_tensor, LEVELS16))
    by_tensor |= _as_ranges(padded_ranges(graph, by_tensor))
    return by_tensor | _as_ranges(neighbour_ranges(graph, by_tensor))


def _as_ranges(intervals: Mapping[str, tuple[float, float]]) -> dict[str, Range]:
    return {name: Range(*each) for name, each in intervals.items()}


def _room(channels: Extremes | None) -> float:
    """How many times what was measured of a tensor int16 reaches, 1 … HEADROOM."""
    if channels is None:
        return HEADROOM
    sizes = np.maximum(-channels.low, channels.high)
    alive = sizes[sizes > 0].astype(np.float64)
    if not len(alive):
        return HEADROOM
    # np.quantile would do, and import numpy.ma, which takes longer than all of this.
    small = np.interp(SMALL * (len(alive) - 1), np.arange(len(alive)), np.sort(alive))
    codes = CODES16 * small / alive.max()
    return float(np.clip(codes / CODES8, 1.0, HEADROOM))


def _saturated(measured: Histogram, top: float) -> Range:
    return Range(max(measured.low, -top), min(measured.high, top))


def _moving_average(samples: Extremes, momentum: float) -> Range:
    def moved(average: float, value: float) -> float:
        return momentum * average + (1.0 - momentum) * value

    low, high = (reduce(moved, map(float, side)) for side in samples)
    return Range(low, high)
