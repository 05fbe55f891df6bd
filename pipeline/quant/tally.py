"""Tally: running statistics of tensors that lie one behind the other in one buffer.

All of them at once: per sample a handful of NumPy calls, however many tensors there are.

    extremes    exact: of every channel, of these for the tensor
    histogram   of a tensor of up to 2 * ENOUGH elements every one; of a larger one one element
                out of every k, which counts k times

Which of its k elements a cell gives is spread evenly over the cells (multiples of the golden
ratio), so that no row or column of an image is always or never seen. Single elements,
not stretches: neighbours are alike, and say less of the tails.
The bins follow the largest magnitude so far; widening them loses nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
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

ENOUGH = 4096
HELD = 8  # samples whose values wait to be counted together
GOLDEN = 2654435769  # 2**32 / the golden ratio

Buffer = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Layout:
    """Where each tensor lies in the buffer, by name: shapes without a zero."""

    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes.values()]

    @cached_property
    def starts(self) -> Int64:
        return np.cumsum([0, *self.sizes])[:-1]

    @property
    def elements(self) -> int:
        return sum(self.sizes)

    @cached_property
    def parts(self) -> list[int]:
        """How many parts have extremes of their own: the channels of each image, or one."""
        return [math.prod(shape[:2]) if len(shape) == 4 else 1 for shape in self.shapes.values()]

    @cached_property
    def part_starts(self) -> Int64:
        rows = zip(self.starts, self.sizes, self.parts, strict=True)
        return np.concatenate([start + size // n * np.arange(n) for start, size, n in rows])

    @cached_property
    def strides(self) -> list[int]:
        """k: one element out of so many is counted."""
        return [max(size // ENOUGH, 1) if size > 2 * ENOUGH else 1 for size in self.sizes]

    @cached_property
    def counted(self) -> list[Int64]:
        """The elements of each tensor that are counted, as places in the buffer."""
        rows = zip(self.starts, self.sizes, self.strides, strict=True)
        return [start + _counted(size, k) for start, size, k in rows]


def _counted(size: int, k: int) -> Int64:
    cell = np.arange(size // k)
    return cell * k + (cell * GOLDEN % 2**32) * k // 2**32


class Tally:
    """Filled sample by sample, from several threads at once; the order decides nothing."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        count = len(layout.shapes)
        self._lock = threading.Lock()
        self._exponents = np.full(count, FINEST, np.int32)
        self._counts = np.zeros((count, 2, BINS), np.int64)
        self._places = np.concatenate(layout.counted)
        lengths = [len(places) for places in layout.counted]
        self._rows = np.repeat(np.arange(count), lengths)
        self._scales = scale_of(self._exponents)[self._rows]
        self._held: list[Buffer] = []
        self._first_parts = np.cumsum([0, *layout.parts])[:-1]
        self._parts: Extremes | None = None
        self._samples: dict[int, Extremes] = {}

    def add(self, number: int, buffer: Buffer) -> None:
        """The tensors of sample `number`. Raises StageError for NaN and infinity."""
        starts = self._layout.part_starts
        parts = Extremes(
            np.minimum.reduceat(buffer, starts) + np.float32(0),  # which makes -0 plain zero
            np.maximum.reduceat(buffer, starts) + np.float32(0),
        )
        own = Extremes(
            np.minimum.reduceat(parts.low, self._first_parts),
            np.maximum.reduceat(parts.high, self._first_parts),
        )
        self._refuse_infinite(own)
        with self._lock:
            self._samples[number] = own
            self._parts = parts if self._parts is None else self._parts | parts
            self._widen(exponents(np.maximum(-own.low, own.high)))
            self._held.append(buffer.take(self._places))
            if len(self._held) == HELD:
                self._count_held()

    def _count_held(self) -> None:
        """The held values into their bins, block by block of places: then the bins of one tensor
        serve all samples while they are in the cache."""
        flat = self._counts.reshape(-1)
        for start in range(0, len(self._places), BLOCK // HELD):
            block = slice(start, start + BLOCK // HELD)
            values = np.stack([held[block] for held in self._held])
            bins = codes(values, self._scales[block])
            bins += self._rows[block] * (2 * BINS)
            np.add.at(flat, bins.reshape(-1), 1)
        self._held.clear()

    def statistics(self) -> Statistics:
        if self._held:
            self._count_held()
        numbers = sorted(self._samples)
        low = np.array([self._samples[number].low for number in numbers])
        high = np.array([self._samples[number].high for number in numbers])
        tensors, channels, samples = {}, {}, {}
        for row, name in enumerate(self._layout.shapes if numbers else ()):
            tensors[name] = Histogram(
                int(self._exponents[row]),
                self._counts[row] * self._layout.strides[row],
                float(low[:, row].min()),
                float(high[:, row].max()),
                self._layout.sizes[row] * len(numbers),
            )
            samples[name] = Extremes(low[:, row], high[:, row])
            if len(self._layout.shapes[name]) == 4:
                channels[name] = self._of_channels(row, self._layout.shapes[name])
        return Statistics(tensors, channels, samples, tuple(numbers))

    def _of_channels(self, row: int, shape: Sequence[int]) -> Extremes:
        assert self._parts is not None
        first = self._first_parts[row]
        own = slice(first, first + self._layout.parts[row])
        low, high = (side[own].reshape(shape[:2]) for side in self._parts)
        return Extremes(low.min(axis=0), high.max(axis=0))

    def _refuse_infinite(self, own: Extremes) -> None:
        for name, low, high in zip(self._layout.shapes, *own, strict=True):
            if not (math.isfinite(low) and math.isfinite(high)):
                what = f"the float model gives no finite number: {low} .. {high}"
                raise StageError(what, name)

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        rows = np.flatnonzero(needed > self._exponents)
        for row in rows:
            self._counts[row] = coarse(self._counts[row], int(needed[row] - self._exponents[row]))
        if len(rows):
            self._exponents = np.maximum(self._exponents, needed)
            self._scales = scale_of(self._exponents)[self._rows]
