"""Statistics of a tensor's values against its grid: extremes, errors and clipping."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.kernels.histogram import BLOCK


class TensorStats(NamedTuple):
    """Per channel: extremes, sums of squared error and squared clipping error, and the count of
    clipped values. `numbers` is the count of values per channel."""

    low: np.ndarray
    high: np.ndarray
    squared_error: np.ndarray
    clipped: np.ndarray
    outside: np.ndarray
    numbers: int

    def plus(self, other: TensorStats) -> TensorStats:
        return TensorStats(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.squared_error + other.squared_error,
            self.clipped + other.clipped,
            self.outside + other.outside,
            self.numbers + other.numbers,
        )


def stats_of(node: CalibrationNode, values: np.ndarray) -> TensorStats:
    """The statistics of `values`; per channel for per-channel scales."""
    rows = values[None] if node.axis is None else np.moveaxis(values, node.axis, 0)
    rows = rows.reshape(len(rows), -1)
    width = max(1, BLOCK // max(1, len(rows)))
    starts = range(0, max(1, rows.shape[1]), width)
    return reduce(
        TensorStats.plus, (_block_stats(node, rows[:, start : start + width]) for start in starts)
    )


def _block_stats(node: CalibrationNode, block: np.ndarray) -> TensorStats:
    """The statistics of a block (channels, values) that fits in the processor cache."""
    rows = block.astype(np.float64)
    low, high = (np.reshape(limit, (-1, 1)) for limit in node.limits)
    step = np.reshape(node.scale, (-1, 1)).astype(np.float64)
    smallest, largest = rows.min(axis=1), rows.max(axis=1)
    clipped, outside = np.zeros(len(rows)), np.zeros(len(rows), np.intp)
    inside = rows
    # NaN fails the comparison; the extremes reveal it later.
    if not (np.all(smallest >= low[:, 0]) and np.all(largest <= high[:, 0])):
        inside = np.clip(rows, low, high)
        cut = rows - inside
        clipped, outside = _squared(cut), (np.abs(cut) > step / 2).sum(axis=1)
    rounded = inside / step
    rounded = np.multiply(
        np.rint(rounded, out=rounded), step, out=rounded
    )  # an integer zero point does not matter
    error = np.subtract(rows, rounded, out=rounded)
    return TensorStats(smallest, largest, _squared(error), clipped, outside, rows.shape[1])


def _squared(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)
