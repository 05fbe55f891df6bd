"""The loss of a grid as a Kullback-Leibler divergence, in nats.

h is the histogram of the tensor, each bin by its middle, and N its sum. P is h / N, with the mass
beyond the grid added to the last bins within it. Q has the mass of each code, only from values
within the grid, spread evenly over the non-empty bins that become this code:

    KL(P || Q) = sum P log(P / Q)

It is 0 if every bin has its own code. Bin 0 takes the count of bin 1, as in the `kl` thresholds:
zero is a code exactly.
"""

from __future__ import annotations

import numpy as np

from npumake.graph.qdq import Grid
from npumake.kernels.histogram import BINS, Histogram, histogram

BIN_WIDTH = 8  # histogram bins in one bin here: 2048 magnitudes on either side of zero


def divergence(statistics: Histogram, grid: Grid) -> float:
    """KL(P || Q) of a tensor on a grid of one scale."""
    counts = statistics.counts.reshape(2, BINS // BIN_WIDTH, BIN_WIDTH).sum(axis=2)
    middles = np.ldexp((np.arange(BINS // BIN_WIDTH) + 0.5) * BIN_WIDTH, statistics.exponent)
    counts[:, 0] = counts[:, 1]
    filled = counts > 0
    x, h = np.stack([-middles, middles])[filled], counts[filled].astype(np.float64)
    limits = np.iinfo(grid.zero_point.dtype)
    steps = np.rint(x / float(grid.scale)) + float(grid.zero_point)
    within = (steps >= limits.min) & (steps <= limits.max)
    if not within.any():
        return float(bool(h.size))
    _, code = np.unique(steps[within], return_inverse=True)
    q = (np.bincount(code, h[within]) / np.bincount(code))[code] / h[within].sum()
    p = _gathered(x, h, within) / h.sum()
    return max(float((p * np.log(p / q)).sum()), 0.0)


def divergence_of(values: np.ndarray, grid: Grid, axis: int) -> float:
    """The divergence of a constant; its grid may have a scale per channel along `axis`."""
    shape = [-1 if index == axis else 1 for index in range(values.ndim)]
    several = grid.scale.size > 1
    scale = grid.scale.reshape(shape) if several else grid.scale.reshape(())
    steps = (values / scale).astype(np.float32)
    unit = Grid(np.ones((), np.float32), grid.zero_point.reshape(-1)[0])
    return divergence(histogram(steps), unit)


def _gathered(x: np.ndarray, h: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The bins within the grid; the first and the last also take the mass beyond them."""
    inside, p = x[within], h[within].copy()
    p[np.argmin(inside)] += h[x < inside.min()].sum()
    p[np.argmax(inside)] += h[x > inside.max()].sum()
    return np.asarray(p)
