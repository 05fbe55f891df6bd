"""Layout: how the watched tensors lie one behind the other in one buffer, and how it is read.

It is read in blocks that stay in the cache. Of each is kept, in every sample, what the extremes of
the channels follow from in the end:

    large channels     the extremes of each
    small channels     every element: a channel of 9 elements costs more to begin than to read
    channels that lie  the extremes of each of some stretches of pixels of each channel: an image is
    side by side       folded onto itself, and nothing is taken apart
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.kernels.arrays import Int64
from pipeline.kernels.histogram import BLOCK
from pipeline.quant.calibration.views import ENOUGH, Shape, View, counted

CACHED = 8 * BLOCK  # elements of a block: 1 MB. Of fewer, calls cost more than misses of the cache
LINE = 16  # elements of a line of the cache
SMALL = 128  # elements of a channel, up to which its extremes wait
# What reading takes of a value, in thousandths of a nanosecond: BEGUN to begin a stretch of pixels,
# shared by its values, and KEPT behind it, of each that is kept.
BEGUN, KEPT = 40_000, 300

Buffer = npt.NDArray[np.float32]
Kind = Literal["small", "large", "side by side"]


class Kept(NamedTuple):
    """What is kept of a stretch: of each group of channels that lie side by side, `length` values
    of each. It was `depth` times as much."""

    groups: int
    length: int
    block: int
    depth: int

    @property
    def size(self) -> int:
        return self.groups * self.length * self.block


class Fold(NamedTuple):
    """Of each group, `depth` rows of `width` values onto one another."""

    groups: int
    depth: int
    width: int


class Stretch(NamedTuple):
    """Some parts, one behind the other, of tensor number `row`."""

    start: int
    size: int
    row: int
    kind: Kind
    kept: Kept


@dataclass(frozen=True)
class Block:
    """Some elements of the buffer, all of one kind."""

    span: slice
    kind: Kind
    parts: Int64  # where each starts among the elements, if they are large
    folds: tuple[Fold, ...]  # how they are folded, if they lie side by side
    kept: tuple[Kept, ...]
    tensors: Int64  # where each starts in what is kept
    rows: tuple[int, ...]  # which tensors these are


@dataclass(frozen=True)
class Layout:
    """Where each tensor's view lies in the buffer, by name: shapes without a zero."""

    views: Mapping[str, View]

    @cached_property
    def starts(self) -> Int64:
        """Where each piece starts, and where the last one ends."""
        pieces = (piece for view in self.views.values() for piece in view.pieces)
        return np.cumsum([0, *map(math.prod, pieces)])

    @property
    def elements(self) -> int:
        return int(self.starts[-1])

    def buffer(self) -> Buffer:
        """Room for them, from the start of a line of the cache on: what is written across two lines
        takes longer."""
        room = np.empty(self.elements + LINE, np.float32)
        start = -room.ctypes.data // room.itemsize % LINE
        return room[start : start + self.elements]

    @cached_property
    def blocks(self) -> list[Block]:
        found: list[list[Stretch]] = []
        for stretch in self._stretches():
            run = found[-1] if found else []
            held = sum(other.size for other in run)
            if run and run[0].kind == stretch.kind and held + stretch.size <= CACHED:
                run.append(stretch)
            else:
                found.append([stretch])
        return [_block(run) for run in found]

    def _stretches(self) -> Iterator[Stretch]:
        start = 0
        for row, view in enumerate(self.views.values()):
            kind = _kind(view)
            for piece in view.pieces:
                each = view.block * _of_part(piece)
                left = math.prod(piece) // each
                while left:
                    groups = min(left, max(1, CACHED // each))
                    kept = _kept(kind, groups, piece, view.block)
                    yield Stretch(start, groups * each, row, kind, kept)
                    start += groups * each
                    left -= groups

    @cached_property
    def tensor_parts(self) -> list[int]:
        """The first part of each tensor, and the end of the last one's."""
        counts = [sum(map(_parts, view.pieces)) for view in self.views.values()]
        return np.cumsum([0, *counts]).tolist()

    def counted(self, enough: int) -> list[Int64]:
        """The elements of each tensor that are counted, as places in the buffer."""
        last = np.cumsum([len(view.pieces) for view in self.views.values()]) - 1
        rows = zip(self.starts[last], self.views.values(), strict=True)
        return [start + counted(view, enough) for start, view in rows]


def _parts(piece: Shape) -> int:
    """How many have extremes of their own: the channels of each image, or one."""
    return math.prod(piece[:2]) if len(piece) == 4 else 1


def _of_part(piece: Shape) -> int:
    return math.prod(piece) // _parts(piece)


def _kind(view: View) -> Kind:
    if view.elements <= ENOUGH or _of_part(view.pieces[-1]) <= SMALL:
        return "small"
    return "large" if view.block == 1 else "side by side"


def _kept(kind: Kind, groups: int, piece: Shape, block: int) -> Kept:
    each = _of_part(piece)
    lengths = {"small": each, "large": 1, "side by side": each // _depth(each, block)}
    return Kept(groups, lengths[kind], block, each // lengths[kind])


@lru_cache
def _depth(pixels: int, block: int) -> int:
    """How often an image is folded onto itself, for the least time to read it and what is kept."""
    small = [d for d in range(1, math.isqrt(pixels) + 1) if pixels % d == 0]
    return min(
        [*small, *(pixels // d for d in reversed(small))],
        key=lambda d: BEGUN * d / (pixels * block) + KEPT / d,
    )


def _folds(kept: Iterable[Kept]) -> Iterator[Fold]:
    """Neighbours that are folded alike are folded together."""
    for (depth, width), alike in groupby(kept, lambda one: (one.depth, one.length * one.block)):
        yield Fold(sum(one.groups for one in alike), depth, width)


def _block(run: list[Stretch]) -> Block:
    first = run[0].start
    parts = [s.start - first + s.kept.depth * np.arange(s.kept.groups) for s in run]
    return Block(
        slice(first, run[-1].start + run[-1].size),
        run[0].kind,
        np.concatenate(parts),
        tuple(_folds(s.kept for s in run)),
        tuple(s.kept for s in run),
        np.cumsum([0, *(s.kept.size for s in run)])[:-1],
        tuple(s.row for s in run),
    )
