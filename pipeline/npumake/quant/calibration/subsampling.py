"""Views: what onnxruntime hands out of each watched tensor.

Most are handed out whole. Of a large one that a clamp keeps from being negative, two small tensors
are, made in the graph:

    the largest value of each channel           GlobalMaxPool
    every s-th element of every s-th row        MaxPool of kernel 1 and stride s

onnxruntime pools in the blocked layout that its convolutions write, while the tensor is in the
cache: nothing is laid out anew, copied, or read again. GlobalMaxPool passes over NaN, so the grid
is looked at as well.

What a clamp keeps from being negative has no least value looked up, large or small: it is said to
be the clamp's. No grid asks for it: it holds 0, and the tensor has nothing below.

A grid of stride s sees the first row, and at times the last, s times too often, and what is next to
padding is not like the rest: of their elements those of one channel out of s are counted.
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

ENOUGH = 4096  # elements of a tensor, of one sample, that tell how its values are spread
LARGE = 4 * ENOUGH
LEFT = 3 * ENOUGH  # of a tensor that is thinned out; with fewer, percentiles stray further
GOLDEN = 2654435769  # 2**32 / the golden ratio

Shape = tuple[int, ...]
Side = Literal["low", "high"]
SIDES: tuple[Side, ...] = ("low", "high")


class TensorSlice(NamedTuple):
    """An array of this shape, and for which extremes of its tensor, and of every channel of it, it
    is read."""

    shape: Shape
    tells: tuple[Side, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class TensorSlices:
    """A tensor of `shape`, and the `pieces` that are handed out of it, of which the last shows how
    its values are spread. `block` channels lie side by side in them: (n, c / block, h, w, block).
    No value is below `floor`, which is its least where no piece tells it."""

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
    step = _step(size) if len(size) == 4 and math.prod(size) > LARGE else 1
    if step == 1:
        return TensorSlices(size, (TensorSlice(size, ("high",)),), floor=floor)
    batch, channels, height, width = size
    some = (batch, channels, -(-height // step), -(-width // step))
    shapes = (batch, channels, 1, 1), some
    return TensorSlices(
        size, tuple(TensorSlice(extent, ("high",)) for extent in shapes), floor=floor
    )


def _floor(value: Value) -> float:
    """What a clamp keeps it from being below; one whose bounds are crossed gives the upper one."""
    maker = producer(value)
    low, high = bounds(maker if is_clamp(maker) else None)
    if low is None:
        return -math.inf
    return low if high is None else min(low, high)


def _step(size: Shape) -> int:
    """s: LEFT elements or somewhat more are left, and eight rows and columns."""
    return max(1, min(math.isqrt(math.prod(size) // LEFT), size[2] // 8, size[3] // 8))


def spread(cells: int, k: int) -> Int64:
    """Which of its k elements each cell gives, 0 .. k - 1, (cells,)."""
    return (np.arange(cells) * GOLDEN & 2**32 - 1) * k >> 32


@lru_cache
def counted_elements(view: TensorSlices, enough: int) -> Int64:
    """Which elements of the last piece are counted, as places in it: `enough` or somewhat more, or
    all there are. They are the same ones however channels lie. (Many tensors of a model are of one
    size.)"""
    piece = view.pieces[-1].shape
    places = _counted(view, enough)
    return places if view.block == 1 else np.sort(_side_by_side(places, piece, view.block))


def _counted(view: TensorSlices, enough: int) -> Int64:
    piece = view.pieces[-1].shape
    if len(view.pieces) == 1:
        return _some(math.prod(piece), enough)
    _, channels, rows, columns = piece
    step = _step(view.shape)
    chance = spread(channels, step)[:, None, None]
    by_row = ~_on_edge(view.shape[2], rows, step)[:, None] | (chance == 0)
    by_column = ~_on_edge(view.shape[3], columns, step) | (chance == step - 1)
    places = np.flatnonzero(np.broadcast_to(by_row & by_column, piece))
    return places[_some(len(places), enough)]


def _side_by_side(places: Int64, piece: Shape, block: int) -> Int64:
    """Where these elements lie in blocks of channels."""
    channel, pixel = np.divmod(places, piece[2] * piece[3])
    group, lane = np.divmod(channel, block)  # of all images: blocks are full
    return (group * piece[2] * piece[3] + pixel) * block + lane


def _some(elements: int, enough: int) -> Int64:
    k = max(1, elements // enough)
    cells = elements // k
    return np.arange(cells) * k + spread(cells, k)


def _on_edge(length: int, count: int, step: int) -> npt.NDArray[np.bool_]:
    at = np.arange(count) * step
    return (at == 0) | (at == length - 1)


def sampled_outputs(graph: Graph, name: str, view: TensorSlices) -> list[str | ExtraOutput]:
    """The pieces of this tensor of `graph`."""
    if len(view.pieces) == 1:
        return [name]
    step = _step(view.shape)
    grid = {"kernel_shape": [1, 1], "strides": [step, step]}
    return [
        ExtraOutput(graph.free_name(f"{name}.largest"), "GlobalMaxPool", name),
        ExtraOutput(graph.free_name(f"{name}.some"), "MaxPool", name, grid),
    ]
