"""Tally: running statistics of tensors that lie one behind the other in one buffer.

All of them at once: per sample a handful of NumPy calls, however many tensors there are.

    extremes    of every channel, of these for the tensor: exact, as far as views hand them out
    histogram   of what is handed out (calibration.views) one element out of every k, so that
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
from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from pipeline.errors import StageError
from pipeline.kernels.arrays import Int64
from pipeline.kernels.histogram import (
    BINS,
    FINEST,
    Histogram,
    coarse,
    codes,
    exponents,
    scale_of,
)
from pipeline.quant.calibration.layout import Buffer, Layout
from pipeline.quant.calibration.reach import Reach, by_channel, plain
from pipeline.quant.calibration.statistics import Extremes, Statistics
from pipeline.quant.calibration.views import ENOUGH

EARLY = 16  # samples that are looked at closely: of later ones FEWER times fewer values are counted
FEWER = 4
HELD = 16 * ENOUGH  # values of a tensor that are counted together, while its bins are in the cache


class NotFiniteError(StageError):
    """NaN or infinity in a tensor that is observed."""


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
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._exponents = np.full(count, FINEST, np.int32)
        self._counts = np.zeros((count, 2, BINS), np.int64)
        self._empty = True  # nothing is counted yet
        self._early, self._late = Picked(layout, ENOUGH), Picked(layout, ENOUGH // FEWER)
        self._reaches: list[Reach] = []
        self._samples: dict[int, Extremes] = {}
        self._new: list[Extremes] = []  # of samples that _all does not know yet
        self._all = Extremes(np.full(count, np.inf, "f"), np.full(count, -np.inf, "f"))

    def reach(self) -> Reach:
        """What one thread hands in with its samples."""
        self._reaches.append(Reach(self._layout))
        return self._reaches[-1]

    def add(self, number: int, buffer: Buffer, reach: Reach) -> None:
        """The tensors of sample `number`. Raises StageError for NaN and infinity, at times that of
        a sample before."""
        own = reach.add(buffer)
        picked = self._early if number < EARLY else self._late
        values = buffer.take(picked.places)
        with self._lock:
            self._samples[number] = own
            self._new.append(own)
            picked.held.append(values)
            if len(picked.held) < picked.room:
                return
            held, picked.held, known = picked.held, [], self._known()
        with self._counting:  # the other threads go on meanwhile
            self._count(picked, held, known)

    def _known(self) -> Extremes:
        """The extremes of each tensor so far. Raises StageError for NaN and infinity."""
        new = _stacked([self._all, *self._new])
        self._all, self._new = plain(Extremes(new.low.min(axis=0), new.high.max(axis=0))), []
        self._refuse_infinite(self._all)
        return self._all

    def _count(self, picked: Picked, held: list[Buffer], known: Extremes) -> None:
        """The held values into their bins, tensor by tensor: its bins serve all samples while they
        are in the cache. `known` are extremes of the tensors, of these samples and others."""
        self._widen(exponents(np.maximum(-known.low, known.high)))
        scales = scale_of(self._exponents)
        columns = picked.tensors, picked.weights, self._counts, scales, known.low >= 0
        for row in zip(*columns, strict=True):
            _fill(held, *row)

    def statistics(self) -> Statistics:
        """Raises StageError for NaN and infinity."""
        numbers = sorted(self._samples)
        if not numbers:
            return Statistics({})
        known = self._known()
        for picked in (self._early, self._late):
            if picked.held:
                self._count(picked, picked.held, known)
        low, high = plain(_stacked([self._samples[number] for number in numbers]))
        parts = reduce(or_, (reach.of_parts() for reach in self._reaches if reach.used))
        tensors, samples = {}, {}
        for row, (name, view) in enumerate(self._layout.views.items()):
            size = math.prod(view.shape)
            tensors[name] = Histogram(
                int(self._exponents[row]),
                self._counts[row],
                float(known.low[row]),
                float(known.high[row]),
                size * len(numbers),
            )
            samples[name] = Extremes(low[:, row], high[:, row])
        channels = by_channel(self._layout, parts)
        return Statistics(tensors, channels, samples, tuple(numbers))

    def _refuse_infinite(self, known: Extremes) -> None:
        finite = np.isfinite(known.low) & np.isfinite(known.high)
        if not finite.all():
            row = int(np.argmin(finite))
            what = f"the float model gives no finite number: {known.low[row]} .. {known.high[row]}"
            raise NotFiniteError(what, list(self._layout.views)[row])

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        for row in () if self._empty else np.flatnonzero(needed > self._exponents):
            k = int(needed[row] - self._exponents[row])
            self._counts[row] = coarse(self._counts[row], k)
        self._exponents = np.maximum(self._exponents, needed)
        self._empty = False


def _fill(
    held: list[Buffer], own: slice, weight: int, counts: Int64, scale: np.float32, positive: bool
) -> None:
    """Count in `counts`, (2, BINS), what is held of one tensor, its `own` of every sample."""
    values = np.concatenate([sample[own] for sample in held])
    if positive:
        np.add.at(counts[1], (values * scale).astype(np.intp), weight)
    else:
        np.add.at(counts.reshape(-1), codes(values, scale), weight)


def _stacked(some: Sequence[Extremes]) -> Extremes:
    return Extremes(np.stack([one.low for one in some]), np.stack([one.high for one in some]))
