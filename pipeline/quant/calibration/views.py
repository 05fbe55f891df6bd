"""Views: what onnxruntime hands out of each watched tensor.

Most are handed out whole. Of a large one that a clamp keeps from being negative, two small tensors
are, made in the graph:

    the largest value of each channel           GlobalMaxPool
    every s-th element of every s-th row        MaxPool of kernel 1 and stride s

onnxruntime pools in the blocked layout that its convolutions write, while the tensor is in the
cache: nothing is laid out anew, copied, or read again. The least value is that of the elements
seen. No grid asks for it: it holds 0, and the tensor has nothing below.

A grid of stride s sees the first row, and at times the last, s times too often, and what is next to
padding is not like the rest: of their elements those of one channel out of s are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.engine.fusion import bounds, is_clamp
from pipeline.graph import Graph, Made, Value, producer, shape
from pipeline.kernels.arrays import Int64

ENOUGH = 4096  # elements of a tensor, of one sample, that tell how its values are spread
LARGE = 4 * ENOUGH
LEFT = 3 * ENOUGH  # of a tensor that is thinned out; with fewer, percentiles stray further
GOLDEN = 2654435769  # 2**32 / the golden ratio

Shape = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A tensor of `shape`, and what is handed out of it: arrays of the shapes of `pieces`, of
    which the last shows how its values are spread and all of them together how far."""

    shape: Shape
    pieces: tuple[Shape, ...]

    @property
    def elements(self) -> int:
        return sum(math.prod(piece) for piece in self.pieces)


def view_of(value: Value) -> View:
    size = shape(value)
    if len(size) != 4 or math.prod(size) <= LARGE or not _is_kept_from_below_zero(value):
        return View(size, (size,))
    batch, channels, height, width = size
    step = _step(size)
    if step == 1:
        return View(size, (size,))
    some = (batch, channels, -(-height // step), -(-width // step))
    return View(size, ((batch, channels, 1, 1), some))


def _is_kept_from_below_zero(value: Value) -> bool:
    maker = producer(value)
    low = bounds(maker).low if is_clamp(maker) else None
    return low is not None and low >= 0


def _step(size: Shape) -> int:
    """s: LEFT elements or somewhat more are left, and eight rows and columns."""
    return max(1, min(math.isqrt(math.prod(size) // LEFT), size[2] // 8, size[3] // 8))


def spread(cells: int, k: int) -> Int64:
    """Which of its k elements each cell gives, 0 .. k - 1, (cells,)."""
    return (np.arange(cells) * GOLDEN & 2**32 - 1) * k >> 32


def counted(view: View, enough: int) -> Int64:
    """Which elements of the last piece are counted, as places in it: `enough` or somewhat more, or
    all there are."""
    piece = view.pieces[-1]
    if len(view.pieces) == 1:
        return _some(math.prod(piece), enough)
    _, channels, rows, columns = piece
    step = _step(view.shape)
    chance = spread(channels, step)[:, None, None]
    by_row = ~_on_edge(view.shape[2], rows, step)[:, None] | (chance == 0)
    by_column = ~_on_edge(view.shape[3], columns, step) | (chance == step - 1)
    places = np.flatnonzero(np.broadcast_to(by_row & by_column, piece))
    return places[_some(len(places), enough)]


def _some(elements: int, enough: int) -> Int64:
    k = max(1, elements // enough)
    cells = elements // k
    return np.arange(cells) * k + spread(cells, k)


def _on_edge(length: int, seen: int, step: int) -> npt.NDArray[np.bool_]:
    at = np.arange(seen) * step
    return (at == 0) | (at == length - 1)


def handed_out(graph: Graph, views: Mapping[str, View]) -> Iterator[str | Made]:
    """The pieces of the tensors of `graph`, by name, one behind the other."""
    for name, view in views.items():
        if len(view.pieces) == 1:
            yield name
            continue
        step = _step(view.shape)
        yield Made(graph.free_name(f"{name}.largest"), "GlobalMaxPool", name)
        grid = {"kernel_shape": [1, 1], "strides": [step, step]}
        yield Made(graph.free_name(f"{name}.some"), "MaxPool", name, grid)
