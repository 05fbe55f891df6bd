"""Distributions of tensors and weights, reduced to what a chart can show.

distribution   counts of BARS equal bars from the minimum to the maximum
range          the calibrated range; values beyond it saturate
channels       minimum and maximum of each channel; for weights also the quartiles
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from npumake.graph import Graph
from npumake.kernels.histogram import BINS, Histogram
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.precision.linear_layers import layer
from npumake.quant.search.recipe import Recipe

BARS = 64
MAX_CHANNELS = 64  # the channels with the widest ranges are shown
FIGURES = 4  # significant digits


@dataclass(frozen=True)
class Distribution:
    """`counts` of equal bars from `low` to `high`; `range` is the calibrated one, None without."""

    low: float
    high: float
    counts: tuple[int, ...]
    range: tuple[float, float] | None


@dataclass(frozen=True)
class Channels:
    """`boxes` are (low, high), or (low, quartiles, high), of the channels `numbers`: those with
    the widest ranges of all `count` channels."""

    count: int
    numbers: tuple[int, ...]
    boxes: tuple[tuple[float, ...], ...]


def distributions(statistics: Statistics, recipe: Recipe) -> dict[str, Distribution]:
    """Distributions by tensor, of the graph of `statistics` and `recipe`."""
    return {
        name: Distribution(
            rounded(histogram.low),
            rounded(histogram.high),
            bars(histogram),
            _pair(recipe.ranges[name]) if name in recipe.ranges else None,
        )
        for name, histogram in statistics.tensors.items()
    }


def bars(histogram: Histogram) -> tuple[int, ...]:
    """Counts of bars between the extremes; a bin counts for the bar of its center."""
    bins, counts = histogram.bins, histogram.bin_counts
    middle = np.where(bins < BINS, -1.0, 1.0) * (bins % BINS + 0.5) * 2.0**histogram.exponent
    width = (histogram.high - histogram.low) / BARS
    if not width > 0:
        return (int(counts.sum()), *[0] * (BARS - 1))
    places = np.clip((middle - histogram.low) / width, 0, BARS - 1).astype(np.int64)
    heights = np.zeros(BARS, np.int64)
    np.add.at(heights, places, counts)
    return tuple(int(height) for height in heights)


def activation_channels(statistics: Statistics) -> dict[str, Channels]:
    """Channels by tensor, for tensors that have any."""
    return {name: _of_extremes(extremes) for name, extremes in statistics.channels.items()}


def weight_channels(graph: Graph) -> dict[str, Channels]:
    """Weights of each linear layer by node name: one box per output channel."""
    layers = [weights for node in graph.nodes() if (weights := layer(node)) is not None]
    return {str(weights.node.name): _of_weight(weights.kernel()) for weights in layers}


def _of_weight(kernel: np.ndarray) -> Channels:
    """`kernel` is (groups, outputs, inputs, taps)."""
    rows = kernel.reshape(kernel.shape[0] * kernel.shape[1], -1)
    return _widest(np.percentile(rows, (0, 25, 50, 75, 100), axis=1).T)


def _of_extremes(extremes: Extremes) -> Channels:
    return _widest(np.stack([extremes.low, extremes.high], axis=1).astype(np.float64))


def _widest(boxes: np.ndarray) -> Channels:
    spread = boxes[:, -1] - boxes[:, 0]
    chosen = np.sort(np.argsort(-spread, kind="stable")[:MAX_CHANNELS])
    rows = tuple(tuple(map(rounded, row)) for row in boxes[chosen])
    return Channels(len(boxes), tuple(int(number) for number in chosen), rows)


def _pair(values: Iterable[float]) -> tuple[float, float]:
    low, high = map(rounded, values)
    return low, high


def rounded(value: float) -> float:
    return float(f"{value:.{FIGURES}g}")
