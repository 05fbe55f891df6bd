"""Ranges: the observed extremes, cut to the threshold of the calibration method.

Ranges of Sigmoid outputs reach further up (calibration.output_headroom). Softmax inputs and their
masks end where the exponential does (calibration.saturation_points). Empty ranges take their
neighbors' (calibration.empty_ranges).

moving_average follows the extremes from sample to sample, e <- m * e + (1 - m) * e_i, from those of
the first sample on. All other methods choose a threshold (calibration.thresholds).

Model outputs are never cut. A threshold weighs values by how often they occur, and in an output,
rare large values matter: one probability among a thousand, a few boxes among thousands. (The
inventors of kl do the same: their outputs are float.)
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
from npumake.quant.calibration.empty_ranges import neighbor_ranges
from npumake.quant.calibration.output_headroom import with_headroom
from npumake.quant.calibration.padded_ranges import padded_ranges
from npumake.quant.calibration.saturation_points import LEVELS8, LEVELS16, saturated_ranges
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.calibration.thresholds import threshold
from npumake.quant.precision.placement import output_tensors

MOVING_AVERAGE = "moving_average"
# Later inputs may exceed all samples, and int16 has a bit to spare. Of 400 pictures two have
# SqueezeNet logits a fifth above those of 100 others; clipping them would tie the top classes.
INT16_HEADROOM = 2.0
# No headroom if it would leave a quarter of the channels fewer codes than 8 bits have. In
# YOLOX-nano's stem, with channels from 0.1 to 150, one bit is half of the error.
CODES16, CODES8 = 32767, 256
SMALL_CHANNEL_QUANTILE = 0.25


class Range(NamedTuple):
    low: float
    high: float


def ranges(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool = False
) -> dict[str, Range]:
    """The range of every tensor in `statistics`, which are of the float `graph`; for `symmetric`
    grids if that is set."""
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
    return by_tensor | _as_ranges(neighbor_ranges(graph, by_tensor))


def int16_ranges(graph: Graph, statistics: Statistics) -> dict[str, Range]:
    """The int16 range of every tensor: its extremes, times up to INT16_HEADROOM as long as its
    smaller channels have CODES8 codes or more."""
    by_tensor: dict[str, Range] = {}
    for name, measured in statistics.tensors.items():
        room = _room(statistics.channels.get(name))
        by_tensor[name] = Range(room * measured.low, room * measured.high)
    by_tensor |= _as_ranges(saturated_ranges(graph, statistics.peaks, by_tensor, LEVELS16))
    by_tensor |= _as_ranges(padded_ranges(graph, by_tensor))
    return by_tensor | _as_ranges(neighbor_ranges(graph, by_tensor))


def _as_ranges(intervals: Mapping[str, tuple[float, float]]) -> dict[str, Range]:
    return {name: Range(*interval) for name, interval in intervals.items()}


def _room(channels: Extremes | None) -> float:
    """The factor by which int16 exceeds the observed range, 1 .. INT16_HEADROOM."""
    if channels is None:
        return INT16_HEADROOM
    sizes = np.maximum(-channels.low, channels.high)
    alive = sizes[sizes > 0].astype(np.float64)
    if not len(alive):
        return INT16_HEADROOM
    # np.quantile would import numpy.ma, which takes longer than this function.
    small = np.interp(
        SMALL_CHANNEL_QUANTILE * (len(alive) - 1), np.arange(len(alive)), np.sort(alive)
    )
    codes = CODES16 * small / alive.max()
    return float(np.clip(codes / CODES8, 1.0, INT16_HEADROOM))


def _saturated(measured: Histogram, top: float) -> Range:
    return Range(max(measured.low, -top), min(measured.high, top))


def _moving_average(samples: Extremes, momentum: float) -> Range:
    def moved(average: float, value: float) -> float:
        return momentum * average + (1.0 - momentum) * value

    low, high = (reduce(moved, map(float, side)) for side in samples)
    return Range(low, high)
