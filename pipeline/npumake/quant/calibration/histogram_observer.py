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

from npumake.errors import StageError
from npumake.kernels.arrays import Int64
from npumake.kernels.histogram import (
    BINS,
    FINEST,
    Histogram,
    coarse,
    codes,
    exponents,
    scale_of,
)
from npumake.quant.calibration.buffer_layout import Buffer, Layout
from npumake.quant.calibration.minmax_observer import by_channel, plain
from npumake.quant.calibration.observer_buffer import ObserverBuffer, Rows, SampledPlaces
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.calibration.subsampling import ENOUGH

EARLY = 16  # samples that are looked at closely: of later ones FEWER times fewer values are counted
FEWER = 4


class NotFiniteError(StageError):
    """NaN or infinity in a tensor that is observed."""


class HistogramObserver:
    """Filled sample by sample, from so many threads at once; the order decides nothing."""

    def __init__(self, layout: Layout, at_once: int) -> None:
        self._layout = layout
        count = len(layout.views)
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._exponents = np.full(count, FINEST, np.int32)
        self._counts = np.zeros((count, 2, BINS), np.int64)
        self._empty = True  # nothing is counted yet
        self._early = SampledPlaces(layout, ENOUGH, at_once)
        self._late = SampledPlaces(layout, ENOUGH // FEWER, at_once)
        self._shares: list[ObserverBuffer] = []
        self._samples: dict[int, Extremes] = {}
        self._new: list[Extremes] = []  # of samples that _all does not know yet
        self._all = Extremes(np.full(count, np.inf, "f"), np.full(count, -np.inf, "f"))

    def share(self) -> ObserverBuffer:
        """What one thread hands in its samples with."""
        self._shares.append(ObserverBuffer(self._layout, (self._early, self._late)))
        return self._shares[-1]

    def add(self, number: int, buffer: Buffer, share: ObserverBuffer) -> None:
        """The tensors of sample `number`. Raises StageError for NaN and infinity, at times that of
        a sample before."""
        picked = self._early if number < EARLY else self._late
        if share.is_full or share.picked is not picked:
            self._count(share)
            share.picked = picked
        own = share.reach.add(buffer)
        share.hold(buffer)
        with self._lock:
            self._samples[number] = own
            self._new.append(own)

    def _known(self) -> Extremes:
        """The extremes of each tensor so far. Raises StageError for NaN and infinity."""
        new = _stacked([self._all, *self._new])
        self._all, self._new = plain(Extremes(new.low.min(axis=0), new.high.max(axis=0))), []
        self._refuse_infinite(self._all)
        return self._all

    def _count(self, *shares: ObserverBuffer) -> None:
        """What waits there into its bins, tensor by tensor: its bins serve all samples while they
        are in the cache."""
        pending = [(share.picked, share.let_go()) for share in shares if not share.is_empty]
        if not pending:  # before the first sample nothing is known
            return
        with self._lock:
            extremes = self._known()
        with self._counting:  # the other threads go on meanwhile
            self._widen(exponents(np.maximum(-extremes.low, extremes.high)))
            columns = self._counts, scale_of(self._exponents), extremes.low >= 0
            for row, bins in enumerate(zip(*columns, strict=True)):
                for picked, x in pending:
                    _fill(x[:, picked.tensors[row]], picked.weights[row], *bins)

    def statistics(self) -> Statistics:
        """Raises StageError for NaN and infinity."""
        numbers = sorted(self._samples)
        if not numbers:
            return Statistics({})
        self._count(*self._shares)
        extremes = self._known()
        low, high = plain(_stacked([self._samples[number] for number in numbers]))
        parts = reduce(or_, (s.reach.of_parts() for s in self._shares if s.reach.used))
        tensors, samples = {}, {}
        for row, (name, view) in enumerate(self._layout.views.items()):
            size = math.prod(view.shape)
            tensors[name] = Histogram(
                int(self._exponents[row]),
                self._counts[row],
                float(extremes.low[row]),
                float(extremes.high[row]),
                size * len(numbers),
            )
            samples[name] = Extremes(low[:, row], high[:, row])
        channels = by_channel(self._layout, parts)
        return Statistics(tensors, channels, samples, tuple(numbers))

    def _refuse_infinite(self, extremes: Extremes) -> None:
        finite = np.isfinite(extremes.low) & np.isfinite(extremes.high)
        if not finite.all():
            row = int(np.argmin(finite))
            span = f"{extremes.low[row]} .. {extremes.high[row]}"
            what = f"the float model gives no finite number: {span}"
            raise NotFiniteError(what, list(self._layout.views)[row])

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        for row in () if self._empty else np.flatnonzero(needed > self._exponents):
            k = int(needed[row] - self._exponents[row])
            self._counts[row] = coarse(self._counts[row], k)
        self._exponents = np.maximum(self._exponents, needed)
        self._empty = False


def _fill(x: Rows, weight: int, counts: Int64, scale: np.float32, positive: bool) -> None:
    """Count in `counts`, (2, BINS), the values of one tensor."""
    bins = counts[1] if positive else counts.reshape(-1)
    places = (x * scale).astype(np.intp) if positive else codes(x, scale)
    increments = np.bincount(places.ravel())
    increments *= weight
    bins[: len(increments)] += increments


def _stacked(some: Sequence[Extremes]) -> Extremes:
    return Extremes(
        np.stack([extremes.low for extremes in some]),
        np.stack([extremes.high for extremes in some]),
    )
