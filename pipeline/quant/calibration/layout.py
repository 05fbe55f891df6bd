"""Layout: how the watched tensors lie one behind the other in one buffer, and how it is read.

It is read in blocks that stay in the cache, each of one of two kinds:

    large channels    the extremes of every channel, in every sample
    small channels    the extremes of every element over the samples, from which those of the
                      channels follow in the end: a channel of 9 elements costs more to begin
                      than to read
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.kernels.arrays import Int64
from pipeline.kernels.histogram import BLOCK
from pipeline.quant.calibration.views import ENOUGH, Shape, View, counted

CACHED = 8 * BLOCK  # elements of a block: 1 MB. Of fewer, calls cost more than misses of the cache
SMALL = 128  # elements of a channel, up to which its extremes wait

Buffer = npt.NDArray[np.float32]


class Stretch(NamedTuple):
    """Some parts, one behind the other, of tensor number `row`."""

    start: int
    size: int
    parts: int
    row: int
    small: bool


@dataclass(frozen=True)
class Block:
    """Some elements of the buffer, and in them where each part starts and where each tensor."""

    span: slice
    parts: Int64
    tensors: Int64  # places among the elements where the channels are small, else among the parts
    rows: tuple[int, ...]  # which tensors these are
    small: bool


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

    @cached_property
    def blocks(self) -> list[Block]:
        found: list[list[Stretch]] = []
        for stretch in self._stretches():
            run = found[-1] if found else []
            held = sum(other.size for other in run)
            if run and run[0].small == stretch.small and held + stretch.size <= CACHED:
                run.append(stretch)
            else:
                found.append([stretch])
        return [_block(run) for run in found]

    def _stretches(self) -> Iterator[Stretch]:
        start = 0
        for row, view in enumerate(self.views.values()):
            small = view.elements <= ENOUGH or _of_part(view.pieces[-1]) <= SMALL
            for piece in view.pieces:
                each, left = _of_part(piece), _parts(piece)
                while left:
                    parts = min(left, max(1, CACHED // each))
                    yield Stretch(start, parts * each, parts, row, small)
                    start += parts * each
                    left -= parts

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


def _block(run: list[Stretch]) -> Block:
    first = run[0].start
    starts = [s.start - first + s.size // s.parts * np.arange(s.parts) for s in run]
    in_parts = np.cumsum([0, *(s.parts for s in run)])[:-1]
    in_elements = np.array([s.start - first for s in run])
    return Block(
        slice(first, run[-1].start + run[-1].size),
        np.concatenate(starts),
        in_elements if run[0].small else in_parts,
        tuple(s.row for s in run),
        run[0].small,
    )
