"""Subsampling: which elements of a tensor its histogram counts.

One element out of k, so that `enough` or somewhat more are counted. The counted element of a cell
is spread evenly over the cells (multiples of the golden ratio): no row or column of an image is
always or never counted. Single elements are counted, not stretches: neighbors are alike and show
less of the tails.

A large image behind a clamp at zero is counted on a grid of every s-th element of every s-th row.
Such a grid takes the first row, and sometimes the last, s times too often, and rows next to padding
are special: one channel out of s counts its edge elements.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64

MIN_COUNTED = 4096  # elements per tensor and sample for its distribution
MIN_THINNED_ELEMENTS = 4 * MIN_COUNTED
# Elements left of a thinned tensor; percentiles stray with fewer.
MIN_THINNED_LEFT = 3 * MIN_COUNTED
GOLDEN_RATIO_32 = 2654435769  # 2**32 / the golden ratio

Shape = tuple[int, ...]


def spread(cells: int, k: int) -> Int64:
    """The counted element of each cell, 0 .. k - 1, (cells,)."""
    return (np.arange(cells) * GOLDEN_RATIO_32 & 2**32 - 1) * k >> 32


@lru_cache
def counted_elements(shape: Shape, enough: int, is_clamped: bool = False) -> Int64:
    """The flat positions of the counted elements: `enough` or somewhat more, or all.

    Cached: many tensors of a model share a shape.
    """
    step = grid_step(shape) if is_clamped else 1
    grid = np.arange(math.prod(shape)) if step == 1 else _grid(shape, step)
    k = max(1, len(grid) // enough)
    cells = len(grid) // k
    return grid[np.arange(cells) * k + spread(cells, k)]


def grid_step(shape: Shape) -> int:
    """The stride s of the grid: MIN_THINNED_LEFT elements or more remain, and eight rows and
    columns."""
    size = math.prod(shape)
    if len(shape) != 4 or size <= MIN_THINNED_ELEMENTS:
        return 1
    return max(1, min(math.isqrt(size // MIN_THINNED_LEFT), shape[2] // 8, shape[3] // 8))


def _grid(shape: Shape, step: int) -> Int64:
    """The flat positions on the grid, without most of those on an edge."""
    batch, channels, height, width = shape
    rows, columns = np.arange(0, height, step), np.arange(0, width, step)
    chance = spread(channels, step)[:, None, None]
    by_row = ~_on_edge(rows, height)[:, None] | (chance == 0)
    by_column = ~_on_edge(columns, width) | (chance == step - 1)
    images = np.arange(batch * channels).reshape(batch, channels, 1, 1)
    places = (images * height + rows[:, None]) * width + columns
    return places[np.broadcast_to(by_row & by_column, places.shape)]


def _on_edge(places: Int64, length: int) -> npt.NDArray[np.bool_]:
    return (places == 0) | (places == length - 1)
