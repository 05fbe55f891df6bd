"""Histogram observer: running statistics of tensors that lie in one buffer.

All tensors are counted together: a handful of NumPy calls per sample, however many tensors there
are.

    extremes    of every channel and tensor: exact, as far as the slices hold them
    histogram   of one element out of k (calibration.subsampling), so that MIN_COUNTED or more are
                counted, and MIN_COUNTED / LATE_THINNING from sample EARLY_SAMPLES on;
                each counts for the elements it stands for

The sample's number decides which elements are counted, so shards agree. Which of its k elements a
cell gives is spread evenly over the cells (multiples of the golden ratio): no row or column of an
image is always or never counted. Single elements are counted, not stretches: neighbours are alike
and tell less about the tails. The bins follow the largest magnitude so far; widening them loses
nothing.
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
    MIN_EXPONENT,
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
from npumake.quant.calibration.subsampling import MIN_COUNTED

EARLY_SAMPLES = 16  # later samples count LATE_THINNING times fewer values
LATE_THINNING = 4


class NotFiniteError(StageError):
    """NaN or infinity in an observed tensor."""


class HistogramObserver:
    """Takes samples from `at_once` threads; their order changes nothing."""

    def __init__(self, layout: Layout, at_once: int) -> None:
        self._layout = layout
        count = len(layout.views)
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._exponents = np.full(count, MIN_EXPONENT, np.int32)
        self._counts = np.zeros((count, 2, BINS), np.int64)
        self._empty = True
        self._early = SampledPlaces(layout, MIN_COUNTED, at_once)
        self._late = SampledPlaces(layout, MIN_COUNTED // LATE_THINNING, at_once)
        self._shares: list[ObserverBuffer] = []
        self._samples: dict[int, Extremes] = {}
        self._new: list[Extremes] = []  # samples not yet in _all
        self._all = Extremes(np.full(count, np.inf, "f"), np.full(count, -np.inf, "f"))

    def share(self) -> ObserverBuffer:
        """A buffer for the samples of one thread."""
        self._shares.append(ObserverBuffer(self._layout, (self._early, self._late)))
        return self._shares[-1]

    def add(self, number: int, buffer: Buffer, share: ObserverBuffer) -> None:
        """Adds the tensors of sample `number`. Raises StageError for NaN and infinity, sometimes
        one sample late."""
        picked = self._early if number < EARLY_SAMPLES else self._late
        if share.is_full or share.picked is not picked:
            self._count(share)
            share.picked = picked
        own = share.reach.add(buffer)
        share.hold(buffer)
        with self._lock:
            self._samples[number] = own
            self._new.append(own)

    def _extremes(self) -> Extremes:
        """The extremes of each tensor so far. Raises StageError for NaN and infinity."""
        new = _stacked([self._all, *self._new])
        self._all, self._new = plain(Extremes(new.low.min(axis=0), new.high.max(axis=0))), []
        self._refuse_infinite(self._all)
        return self._all

    def _count(self, *shares: ObserverBuffer) -> None:
        """Counts the waiting values tensor by tensor: a tensor's bins stay in the cache for all
        samples."""
        pending = [(share.picked, share.let_go()) for share in shares if not share.is_empty]
        if not pending:  # before the first sample
            return
        with self._lock:
            extremes = self._extremes()
        with self._counting:  # other threads go on
            self._widen(exponents(np.maximum(-extremes.low, extremes.high)))
            columns = self._counts, scale_of(self._exponents), extremes.low >= 0
            for row, bins in enumerate(zip(*columns, strict=True)):
                for picked, x in pending:
                    _fill(x[:, picked.tensors[row]], picked.weights[row], *bins)

    def statistics(self) -> Statistics:
        """The statistics over all samples. Raises StageError for NaN and infinity."""
        numbers = sorted(self._samples)
        if not numbers:
            return Statistics({})
        self._count(*self._shares)
        extremes = self._extremes()
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
            message = f"the float model gives no finite number: {span}"
            raise NotFiniteError(message, list(self._layout.views)[row])

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        for row in () if self._empty else np.flatnonzero(needed > self._exponents):
            k = int(needed[row] - self._exponents[row])
            self._counts[row] = coarse(self._counts[row], k)
        self._exponents = np.maximum(self._exponents, needed)
        self._empty = False


def _fill(x: Rows, weight: int, counts: Int64, scale: np.float32, positive: bool) -> None:
    """Counts the values of one tensor in `counts`, (2, BINS)."""
    bins = counts[1] if positive else counts.reshape(-1)
    places = (x * scale).astype(np.intp) if positive else codes(x, scale)
    increments = np.bincount(places.ravel())
    increments *= weight
    bins[: len(increments)] += increments


def _stacked(sets: Sequence[Extremes]) -> Extremes:
    return Extremes(
        np.stack([extremes.low for extremes in sets]),
        np.stack([extremes.high for extremes in sets]),
    )
