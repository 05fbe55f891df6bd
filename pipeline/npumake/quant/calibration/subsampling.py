"""Subsampling: the slices of each watched tensor that onnxruntime outputs.

Most tensors are output whole. A large tensor behind a clamp at zero is output as two small tensors,
computed in the graph:

    the largest value of each channel           GlobalMaxPool
    every s-th element of every s-th row        MaxPool of kernel 1 and stride s

onnxruntime pools in the blocked layout of its convolutions while the tensor is in the cache:
nothing is copied or read again. GlobalMaxPool ignores NaN, so the strided grid is checked as well.

Behind a clamp at zero no least value is looked up: it is the clamp's bound. Grids contain 0 anyway.

A grid of stride s takes the first row, and sometimes the last, s times too often, and rows next to
padding are special: one channel out of s counts its edge elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.engine.fusion import bounds, is_clamp
from npumake.graph import ExtraOutput, Graph, Value, producer, shape
from npumake.kernels.arrays import Int64

MIN_COUNTED = 4096  # elements per tensor and sample for its distribution
MIN_THINNED_ELEMENTS = 4 * MIN_COUNTED
MIN_THINNED_LEFT = (
    3 * MIN_COUNTED
)  # elements left of a thinned tensor; percentiles stray with fewer
GOLDEN_RATIO_32 = 2654435769  # 2**32 / the golden ratio

Shape = tuple[int, ...]
Side = Literal["low", "high"]
SIDES: tuple[Side, ...] = ("low", "high")


class TensorSlice(NamedTuple):
    """An array of this shape, and the sides of the extremes that it serves."""

    shape: Shape
    tells: tuple[Side, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class TensorSlices:
    """A tensor of `shape` and its output `pieces`; the last one gives the distribution.

    `block` channels lie side by side: (n, c / block, h, w, block). No value is below `floor`, which
    is the least value where no piece serves it.
    """

    shape: Shape
    pieces: tuple[TensorSlice, ...]
    block: int = 1
    floor: float = -math.inf

    @property
    def elements(self) -> int:
        return sum(piece.elements for piece in self.pieces)


def slices_of(value: Value) -> TensorSlices:
    size, floor = shape(value), _floor(value)
    if not floor >= 0:
        return TensorSlices(size, (TensorSlice(size, SIDES),))
    step = _step(size) if len(size) == 4 and math.prod(size) > MIN_THINNED_ELEMENTS else 1
    if step == 1:
        return TensorSlices(size, (TensorSlice(size, ("high",)),), floor=floor)
    batch, channels, height, width = size
    sampled_shape = (batch, channels, -(-height // step), -(-width // step))
    shapes = (batch, channels, 1, 1), sampled_shape
    return TensorSlices(
        size, tuple(TensorSlice(extent, ("high",)) for extent in shapes), floor=floor
    )


def _floor(value: Value) -> float:
    """The lower bound of a clamp; with crossed bounds, the upper one."""
    maker = producer(value)
    low, high = bounds(maker if is_clamp(maker) else None)
    if low is None:
        return -math.inf
    return low if high is None else min(low, high)


def _step(size: Shape) -> int:
    """The stride s: MIN_THINNED_LEFT elements or more remain, and eight rows and columns."""
    return max(1, min(math.isqrt(math.prod(size) // MIN_THINNED_LEFT), size[2] // 8, size[3] // 8))


def spread(cells: int, k: int) -> Int64:
    """Which of its k elements each cell gives, 0 .. k - 1, (cells,)."""
    return (np.arange(cells) * GOLDEN_RATIO_32 & 2**32 - 1) * k >> 32


@lru_cache
def counted_elements(view: TensorSlices, enough: int) -> Int64:
    """The positions in the last slice of the counted elements: `enough` or somewhat more, or all.

    The channel layout does not change the choice. (Cached: many tensors of a model share a size.)
    """
    piece = view.pieces[-1].shape
    places = _counted(view, enough)
    return places if view.block == 1 else np.sort(_side_by_side(places, piece, view.block))


def _counted(view: TensorSlices, enough: int) -> Int64:
    piece = view.pieces[-1].shape
    if len(view.pieces) == 1:
        return _sampled_indices(math.prod(piece), enough)
    _, channels, rows, columns = piece
    step = _step(view.shape)
    chance = spread(channels, step)[:, None, None]
    by_row = ~_on_edge(view.shape[2], rows, step)[:, None] | (chance == 0)
    by_column = ~_on_edge(view.shape[3], columns, step) | (chance == step - 1)
    places = np.flatnonzero(np.broadcast_to(by_row & by_column, piece))
    return places[_sampled_indices(len(places), enough)]


def _side_by_side(places: Int64, piece: Shape, block: int) -> Int64:
    """The positions of these elements in blocks of channels."""
    channel, pixel = np.divmod(places, piece[2] * piece[3])
    group, lane = np.divmod(channel, block)  # over all images: blocks are full
    return (group * piece[2] * piece[3] + pixel) * block + lane


def _sampled_indices(elements: int, enough: int) -> Int64:
    k = max(1, elements // enough)
    cells = elements // k
    return np.arange(cells) * k + spread(cells, k)


def _on_edge(length: int, count: int, step: int) -> npt.NDArray[np.bool_]:
    at = np.arange(count) * step
    return (at == 0) | (at == length - 1)


def sampled_outputs(graph: Graph, name: str, view: TensorSlices) -> list[str | ExtraOutput]:
    """The slices of this tensor as outputs of `graph`."""
    if len(view.pieces) == 1:
        return [name]
    step = _step(view.shape)
    grid = {"kernel_shape": [1, 1], "strides": [step, step]}
    return [
        ExtraOutput(graph.free_name(f"{name}.largest"), "GlobalMaxPool", name),
        ExtraOutput(graph.free_name(f"{name}.some"), "MaxPool", name, grid),
    ]
