"""Buffer layout: how the watched tensors lie in one buffer, and how it is read.

Slices that are read in the same order lie together and are read in blocks that fit the cache. In
every sample, each slice leaves the values from which channel extremes follow:

    large          the extremes of each channel
    small          every element: to begin a channel of 9 elements costs more than to read it
    side by side   the extremes of some stretches of pixels of each channel: the image is folded
                   onto itself, and no channel is copied

A slice that only serves least or largest values is read for that side alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64
from npumake.kernels.histogram import BLOCK
from npumake.quant.calibration.subsampling import (
    MIN_COUNTED,
    Shape,
    Side,
    TensorSlice,
    TensorSlices,
    counted_elements,
)

MAX_BLOCK_ELEMENTS = 32 * BLOCK  # 4 MB; smaller blocks cost more calls than they save
CACHE_LINE_ELEMENTS = 16
MAX_SMALL_CHANNEL_ELEMENTS = 128  # elements
# Read costs in thousandths of a nanosecond: to begin a stretch of pixels, shared by its values, and
# for each value that remains.
STRETCH_COST, ELEMENT_COST = 40_000, 300

Buffer = npt.NDArray[np.float32]
Kind = Literal["small", "large", "side by side"]


class SampledElements(NamedTuple):
    """The values that remain of a slice: `length` values per channel of `groups` groups of `block`
    channels. The slice holds `depth` times as many."""

    groups: int
    length: int
    block: int
    depth: int

    @property
    def size(self) -> int:
        return self.groups * self.length * self.block


class FoldedRows(NamedTuple):
    """For each group, `depth` rows of `width` values are folded onto one another."""

    groups: int
    depth: int
    width: int


class ReadOrder(NamedTuple):
    """How a slice is read."""

    tells: tuple[Side, ...]
    kind: Kind
    depth: int = 1  # how often the image is folded


class BufferSpan(NamedTuple):
    """Consecutive parts of tensor number `row`."""

    start: int
    size: int
    row: int
    order: ReadOrder
    sampled: SampledElements


@dataclass(frozen=True)
class BufferBlock:
    """Elements of the buffer that are read in one order."""

    span: slice
    order: ReadOrder
    parts: Int64  # start of each channel, for large channels
    folds: tuple[FoldedRows, ...]  # for channels side by side
    sampled: tuple[SampledElements, ...]
    tensors: Int64  # start of each tensor among the sampled values
    rows: tuple[int, ...]  # tensor numbers


class SlicePosition(NamedTuple):
    """A slice of tensor number `row` that starts at `start` in the buffer."""

    start: int
    row: int
    piece: TensorSlice
    order: ReadOrder


@dataclass(frozen=True)
class Layout:
    """The place of each tensor's slices in the buffer, by name. No shape has a zero."""

    views: Mapping[str, TensorSlices]

    @cached_property
    def positions(self) -> list[SlicePosition]:
        """The slices, in the order of the tensors. In the buffer, slices that are read in one order
        lie together."""
        views = self.views.values()
        slices = [
            (row, p, _read_order(p, v.block)) for row, v in enumerate(views) for p in v.pieces
        ]
        order = sorted(range(len(slices)), key=lambda index: slices[index][2])
        ends = accumulate(slices[index][1].elements for index in order)
        starts = dict(zip(order, [0, *ends], strict=False))
        return [SlicePosition(starts[index], *bounds) for index, bounds in enumerate(slices)]

    @property
    def starts(self) -> list[int]:
        """The start of each slice."""
        return [position.start for position in self.positions]

    @property
    def elements(self) -> int:
        return sum(view.elements for view in self.views.values())

    @cached_property
    def blocks(self) -> list[BufferBlock]:
        runs: list[list[BufferSpan]] = []
        size = 0  # elements of the last block
        for stretch in self._stretches():
            size += stretch.size
            if runs and runs[-1][0].order == stretch.order and size <= MAX_BLOCK_ELEMENTS:
                runs[-1].append(stretch)
            else:
                runs.append([stretch])
                size = stretch.size
        return [_block(run) for run in runs]

    def _stretches(self) -> Iterator[BufferSpan]:
        views = list(self.views.values())
        for start, row, piece, order in sorted(self.positions, key=attrgetter("start")):
            block = views[row].block
            part_bytes = block * _of_part(piece.shape)
            left = piece.elements // part_bytes
            while left:
                groups = min(left, max(1, MAX_BLOCK_ELEMENTS // part_bytes))
                sampled = _sampled_elements(order, groups, piece, block)
                yield BufferSpan(start, groups * part_bytes, row, order, sampled)
                start += groups * part_bytes
                left -= groups

    def parts_of(self, side: Side) -> dict[int, list[slice]]:
        """By tensor number, the places of its channels among all extremes of this side."""
        spans: dict[int, list[slice]] = defaultdict(list)
        end = 0
        for block in self.blocks:
            if side in block.order.tells:
                for row, sampled in zip(block.rows, block.sampled, strict=True):
                    start, end = end, end + sampled.groups * sampled.block
                    spans[row].append(slice(start, end))
        return spans

    def counted(self, enough: int) -> list[Int64]:
        """For each tensor, the buffer positions of the elements that are counted."""
        last = {position.row: position.start for position in self.positions}
        views = self.views.values()
        return [last[row] + counted_elements(view, enough) for row, view in enumerate(views)]


def room_for(elements: int) -> Buffer:
    """An empty buffer that starts on a cache line: a write across two lines takes longer."""
    room = np.empty(elements + CACHE_LINE_ELEMENTS, np.float32)
    start = -room.ctypes.data // room.itemsize % CACHE_LINE_ELEMENTS
    return room[start : start + elements]


def _parts(piece: Shape) -> int:
    """The number of parts with extremes of their own: the channels of each image, or one."""
    return math.prod(piece[:2]) if len(piece) == 4 else 1


def _of_part(piece: Shape) -> int:
    return math.prod(piece) // _parts(piece)


def _read_order(piece: TensorSlice, block: int) -> ReadOrder:
    part_size = _of_part(piece.shape)
    if piece.elements <= MIN_COUNTED or part_size <= MAX_SMALL_CHANNEL_ELEMENTS:
        return ReadOrder(piece.tells, "small")
    if block == 1:
        return ReadOrder(piece.tells, "large")
    return ReadOrder(piece.tells, "side by side", _depth(part_size, block))


def _sampled_elements(
    order: ReadOrder, groups: int, piece: TensorSlice, block: int
) -> SampledElements:
    part_size = _of_part(piece.shape)
    lengths = {"small": part_size, "large": 1, "side by side": part_size // order.depth}
    return SampledElements(groups, lengths[order.kind], block, part_size // lengths[order.kind])


@lru_cache
def _depth(pixels: int, block: int) -> int:
    """The number of folds with the least time to read the image and its result."""
    small = [d for d in range(1, math.isqrt(pixels) + 1) if pixels % d == 0]
    return min(
        [*small, *(pixels // d for d in reversed(small))],
        key=lambda d: STRETCH_COST * d / (pixels * block) + ELEMENT_COST / d,
    )


def _folds(sampled: Iterable[SampledElements]) -> Iterator[FoldedRows]:
    """Joins neighbours that are folded in the same order."""
    for (depth, width), run in groupby(
        sampled, lambda elements: (elements.depth, elements.length * elements.block)
    ):
        yield FoldedRows(sum(elements.groups for elements in run), depth, width)


def _block(run: list[BufferSpan]) -> BufferBlock:
    first = run[0].start
    parts = [s.start - first + s.sampled.depth * np.arange(s.sampled.groups) for s in run]
    return BufferBlock(
        slice(first, run[-1].start + run[-1].size),
        run[0].order,
        np.concatenate(parts),
        tuple(_folds(s.sampled for s in run)),
        tuple(s.sampled for s in run),
        np.cumsum([0, *(s.sampled.size for s in run)])[:-1],
        tuple(s.row for s in run),
    )
