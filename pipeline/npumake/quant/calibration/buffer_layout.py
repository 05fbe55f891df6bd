"""Layout: how the watched tensors lie one behind the other in one buffer, and how it is read.

Pieces that are read alike lie together. They are read in blocks that stay in the cache. Of each is
kept, in every sample, what the extremes of the channels follow from in the end:

    large channels     the extremes of each
    small channels     every element: a channel of 9 elements costs more to begin than to read
    channels that lie  the extremes of each of some stretches of pixels of each channel: an image is
    side by side       folded onto itself, and nothing is taken apart

Where a piece tells one side only, least or largest values, it is read for this side only.
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
    ENOUGH,
    Shape,
    Side,
    TensorSlice,
    TensorSlices,
    counted_elements,
)

CACHED = 32 * BLOCK  # elements of a block: 4 MB. Of fewer, calls cost more than they save
LINE = 16  # elements of a line of the cache
SMALL = 128  # elements of a channel, up to which its extremes wait
# What reading takes of a value, in thousandths of a nanosecond: BEGUN to begin a stretch of pixels,
# shared by its values, and KEPT behind it, of each that is kept.
BEGUN, KEPT = 40_000, 300

Buffer = npt.NDArray[np.float32]
Kind = Literal["small", "large", "side by side"]


class SampledElements(NamedTuple):
    """What is kept of a stretch: of each group of channels that lie side by side, `length` values
    of each. It was `depth` times as much."""

    groups: int
    length: int
    block: int
    depth: int

    @property
    def size(self) -> int:
        return self.groups * self.length * self.block


class FoldedRows(NamedTuple):
    """Of each group, `depth` rows of `width` values onto one another."""

    groups: int
    depth: int
    width: int


class ReadOrder(NamedTuple):
    """How a piece is read."""

    tells: tuple[Side, ...]
    kind: Kind
    depth: int = 1  # how often an image is folded onto itself


class BufferSpan(NamedTuple):
    """Some parts, one behind the other, of tensor number `row`."""

    start: int
    size: int
    row: int
    way: ReadOrder
    sampled: SampledElements


@dataclass(frozen=True)
class BufferBlock:
    """Some elements of the buffer, all read in one way."""

    span: slice
    way: ReadOrder
    parts: Int64  # where each starts among the elements, if they are large
    folds: tuple[FoldedRows, ...]  # how they are folded, if they lie side by side
    sampled: tuple[SampledElements, ...]
    tensors: Int64  # where each starts in what is kept
    rows: tuple[int, ...]  # which tensors these are


class SlicePosition(NamedTuple):
    """A piece of tensor number `row`, from `start` on in the buffer."""

    start: int
    row: int
    piece: TensorSlice
    way: ReadOrder


@dataclass(frozen=True)
class Layout:
    """Where each tensor's view lies in the buffer, by name: shapes without a zero."""

    views: Mapping[str, TensorSlices]

    @cached_property
    def positions(self) -> list[SlicePosition]:
        """The pieces, in the order of the tensors; in the buffer those lie together that are read
        in one way."""
        views = self.views.values()
        slices = [(row, p, _way(p, v.block)) for row, v in enumerate(views) for p in v.pieces]
        order = sorted(range(len(slices)), key=lambda index: slices[index][2])
        ends = accumulate(slices[index][1].elements for index in order)
        starts = dict(zip(order, [0, *ends], strict=False))
        return [SlicePosition(starts[index], *each) for index, each in enumerate(slices)]

    @property
    def starts(self) -> list[int]:
        """Where each piece starts."""
        return [each.start for each in self.positions]

    @property
    def elements(self) -> int:
        return sum(view.elements for view in self.views.values())

    @cached_property
    def blocks(self) -> list[BufferBlock]:
        runs: list[list[BufferSpan]] = []
        size = 0  # elements of the last block
        for stretch in self._stretches():
            size += stretch.size
            if runs and runs[-1][0].way == stretch.way and size <= CACHED:
                runs[-1].append(stretch)
            else:
                runs.append([stretch])
                size = stretch.size
        return [_block(run) for run in runs]

    def _stretches(self) -> Iterator[BufferSpan]:
        views = list(self.views.values())
        for start, row, piece, way in sorted(self.positions, key=attrgetter("start")):
            block = views[row].block
            each = block * _of_part(piece.shape)
            left = piece.elements // each
            while left:
                groups = min(left, max(1, CACHED // each))
                sampled = _kept(way, groups, piece, block)
                yield BufferSpan(start, groups * each, row, way, sampled)
                start += groups * each
                left -= groups

    def parts_of(self, side: Side) -> dict[int, list[slice]]:
        """Where the parts of each tensor that tells this side are, of all that do."""
        spans: dict[int, list[slice]] = defaultdict(list)
        end = 0
        for block in self.blocks:
            if side in block.way.tells:
                for row, sampled in zip(block.rows, block.sampled, strict=True):
                    start, end = end, end + sampled.groups * sampled.block
                    spans[row].append(slice(start, end))
        return spans

    def counted(self, enough: int) -> list[Int64]:
        """The elements of each tensor that are counted, as places in the buffer."""
        last = {each.row: each.start for each in self.positions}
        views = self.views.values()
        return [last[row] + counted_elements(view, enough) for row, view in enumerate(views)]


def room_for(elements: int) -> Buffer:
    """Room for them, from the start of a line of the cache on: what is written across two lines
    takes longer."""
    room = np.empty(elements + LINE, np.float32)
    start = -room.ctypes.data // room.itemsize % LINE
    return room[start : start + elements]


def _parts(piece: Shape) -> int:
    """How many have extremes of their own: the channels of each image, or one."""
    return math.prod(piece[:2]) if len(piece) == 4 else 1


def _of_part(piece: Shape) -> int:
    return math.prod(piece) // _parts(piece)


def _way(piece: TensorSlice, block: int) -> ReadOrder:
    each = _of_part(piece.shape)
    if piece.elements <= ENOUGH or each <= SMALL:
        return ReadOrder(piece.tells, "small")
    if block == 1:
        return ReadOrder(piece.tells, "large")
    return ReadOrder(piece.tells, "side by side", _depth(each, block))


def _kept(way: ReadOrder, groups: int, piece: TensorSlice, block: int) -> SampledElements:
    each = _of_part(piece.shape)
    lengths = {"small": each, "large": 1, "side by side": each // way.depth}
    return SampledElements(groups, lengths[way.kind], block, each // lengths[way.kind])


@lru_cache
def _depth(pixels: int, block: int) -> int:
    """How often an image is folded onto itself, for the least time to read it and what is kept."""
    small = [d for d in range(1, math.isqrt(pixels) + 1) if pixels % d == 0]
    return min(
        [*small, *(pixels // d for d in reversed(small))],
        key=lambda d: BEGUN * d / (pixels * block) + KEPT / d,
    )


def _folds(sampled: Iterable[SampledElements]) -> Iterator[FoldedRows]:
    """Neighbours that are folded alike are folded together."""
    for (depth, width), alike in groupby(
        sampled, lambda elements: (elements.depth, elements.length * elements.block)
    ):
        yield FoldedRows(sum(elements.groups for elements in alike), depth, width)


def _block(run: list[BufferSpan]) -> BufferBlock:
    first = run[0].start
    parts = [s.start - first + s.sampled.depth * np.arange(s.sampled.groups) for s in run]
    return BufferBlock(
        slice(first, run[-1].start + run[-1].size),
        run[0].way,
        np.concatenate(parts),
        tuple(_folds(s.sampled for s in run)),
        tuple(s.sampled for s in run),
        np.cumsum([0, *(s.sampled.size for s in run)])[:-1],
        tuple(s.row for s in run),
    )
