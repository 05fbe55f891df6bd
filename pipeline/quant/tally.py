"""Tally: running statistics of tensors that lie one behind the other in one buffer.

All of them at once: per sample a handful of NumPy calls, however many tensors there are.

    extremes    of every channel, of these for the tensor: exact, as far as views hand them out
    histogram   of what is handed out (pipeline.quant.views) one element out of every k, so that
                ENOUGH or somewhat more are counted, in samples from number EARLY on ENOUGH / FEWER;
                each counts for as many as it stands for

What is counted of a sample is decided by its number, and so the same in every shard.
Which of its k elements a cell gives is spread evenly over the cells (multiples of the golden
ratio), so that no row or column of an image is always or never seen. Single elements,
not stretches: neighbours are alike, and say less of the tails.
The bins follow the largest magnitude so far; widening them loses nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pipeline.errors import StageError
from pipeline.kernels.arrays import Int64
from pipeline.kernels.histogram import (
    BINS,
    BLOCK,
    FINEST,
    Histogram,
    coarse,
    codes,
    exponents,
    scale_of,
)
from pipeline.quant.statistics import Extremes, Statistics
from pipeline.quant.views import ENOUGH, Shape, View, counted

EARLY = 16  # samples that are looked at closely: of later ones FEWER times fewer values are counted
FEWER = 4
HELD = 8 * ENOUGH  # values of a tensor that wait to be counted together, while its bins are near

Buffer = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Layout:
    """Where each tensor's view lies in the buffer, by name: shapes without a zero."""

    views: Mapping[str, View]

    @cached_property
    def pieces(self) -> list[Shape]:
        return [piece for view in self.views.values() for piece in view.pieces]

    @cached_property
    def starts(self) -> Int64:
        """Where each piece starts, and where the last one ends."""
        return np.cumsum([0, *(math.prod(piece) for piece in self.pieces)])

    @property
    def elements(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def parts(self) -> list[int]:
        """How many parts of each piece have extremes of their own."""
        return [_parts(piece) for piece in self.pieces]

    @cached_property
    def part_starts(self) -> Int64:
        rows = zip(self.starts[:-1], self.pieces, self.parts, strict=True)
        return np.concatenate(
            [start + math.prod(piece) // n * np.arange(n) for start, piece, n in rows]
        )

    @cached_property
    def blocks(self) -> list[tuple[slice, Int64]]:
        """The buffer in blocks of whole parts that stay in the cache, and where in each block its
        parts start."""
        of = self.part_starts // (2 * BLOCK)
        firsts = np.flatnonzero(np.diff(of, prepend=-1))
        ends = [*self.part_starts[firsts[1:]], self.elements]
        parts = np.split(self.part_starts, firsts[1:])
        return [
            (slice(int(own[0]), int(end)), own - own[0])
            for own, end in zip(parts, ends, strict=True)
        ]

    @cached_property
    def tensor_parts(self) -> Int64:
        """The first part of each tensor, and the end of the last one's."""
        counts = [sum(map(_parts, view.pieces)) for view in self.views.values()]
        return np.cumsum([0, *counts])

    def counted(self, enough: int) -> list[Int64]:
        """The elements of each tensor that are counted, as places in the buffer."""
        last = np.cumsum([len(view.pieces) for view in self.views.values()]) - 1
        rows = zip(self.starts[last], self.views.values(), strict=True)
        return [start + counted(view, enough) for start, view in rows]


def _parts(piece: Shape) -> int:
    """The channels of each image, or one."""
    return math.prod(piece[:2]) if len(piece) == 4 else 1


class Picked:
    """The elements of a sample that are counted, and what waits of them to be counted together."""

    def __init__(self, layout: Layout, enough: int) -> None:
        found = layout.counted(enough)
        ends = np.cumsum([len(places) for places in found]).tolist()
        self.places = np.concatenate(found)
        self.tensors = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        # Each element counts for as many as it stands for.
        self.weights = [
            round(math.prod(view.shape) / len(places))
            for view, places in zip(layout.views.values(), found, strict=True)
        ]
        self.room = HELD // enough  # samples that wait
        self.held: list[Buffer] = []


class Tally:
    """Filled sample by sample, from several threads at once; the order decides nothing."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        count = len(layout.views)
        self._lock = threading.Lock()
        self._exponents = np.full(count, FINEST, np.int32)
        self._counts = np.zeros((count, 2, BINS), np.int64)
        self._early, self._late = Picked(layout, ENOUGH), Picked(layout, ENOUGH // FEWER)
        self._parts: Extremes | None = None
        self._samples: dict[int, Extremes] = {}

    def add(self, number: int, buffer: Buffer) -> None:
        """The tensors of sample `number`. Raises StageError for NaN and infinity."""
        parts = self._extremes(buffer)
        tensors = self._layout.tensor_parts[:-1]
        own = Extremes(
            np.minimum.reduceat(parts.low, tensors), np.maximum.reduceat(parts.high, tensors)
        )
        self._refuse_infinite(own)
        picked = self._early if number < EARLY else self._late
        values = buffer.take(picked.places)
        with self._lock:
            self._samples[number] = own
            self._parts = parts if self._parts is None else self._parts | parts
            self._widen(exponents(np.maximum(-own.low, own.high)))
            picked.held.append(values)
            if len(picked.held) == picked.room:
                self._count(picked)

    def _extremes(self, buffer: Buffer) -> Extremes:
        """Of every part, block by block: what was read for the least is in the cache."""
        sides = [
            (np.minimum.reduceat(buffer[own], starts), np.maximum.reduceat(buffer[own], starts))
            for own, starts in self._layout.blocks
        ]
        low, high = (np.concatenate(side) for side in zip(*sides, strict=True))
        return Extremes(low + np.float32(0), high + np.float32(0))  # -0 becomes plain zero

    def _count(self, picked: Picked) -> None:
        """The held values into their bins, tensor by tensor: its bins serve all samples while they
        are in the cache."""
        rows = zip(
            picked.tensors, picked.weights, self._counts, scale_of(self._exponents), strict=True
        )
        for own, weight, counts, scale in rows:
            bins = codes(np.stack([held[own] for held in picked.held]), scale)
            np.add.at(counts.reshape(-1), bins.reshape(-1), weight)
        picked.held.clear()

    def statistics(self) -> Statistics:
        for picked in (self._early, self._late):
            if picked.held:
                self._count(picked)
        numbers = sorted(self._samples)
        low = np.array([self._samples[number].low for number in numbers])
        high = np.array([self._samples[number].high for number in numbers])
        tensors, channels, samples = {}, {}, {}
        for row, (name, view) in enumerate(self._layout.views.items() if numbers else ()):
            size = math.prod(view.shape)
            tensors[name] = Histogram(
                int(self._exponents[row]),
                self._counts[row],
                float(low[:, row].min()),
                float(high[:, row].max()),
                size * len(numbers),
            )
            samples[name] = Extremes(low[:, row], high[:, row])
            if len(view.shape) == 4:
                channels[name] = self._of_channels(row, view.shape[1])
        return Statistics(tensors, channels, samples, tuple(numbers))

    def _of_channels(self, row: int, channels: int) -> Extremes:
        assert self._parts is not None
        own = slice(*self._layout.tensor_parts[row : row + 2])
        low, high = (side[own].reshape(-1, channels) for side in self._parts)
        return Extremes(low.min(axis=0), high.max(axis=0))

    def _refuse_infinite(self, own: Extremes) -> None:
        names = list(self._layout.views)
        for row in np.flatnonzero(~np.isfinite(own.low) | ~np.isfinite(own.high)):
            what = f"the float model gives no finite number: {own.low[row]} .. {own.high[row]}"
            raise StageError(what, names[row])

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        rows = np.flatnonzero(needed > self._exponents)
        for row in rows:
            self._counts[row] = coarse(self._counts[row], int(needed[row] - self._exponents[row]))
        if len(rows):
            self._exponents = np.maximum(self._exponents, needed)
