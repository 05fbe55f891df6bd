"""Histogram observer: histograms of all tensors, over the samples of all threads.

    extremes    of every channel and tensor: exact (calibration.minmax_observer)
    histogram   of one element out of k (calibration.subsampling), so that MIN_COUNTED or more are
                counted, and MIN_COUNTED / LATE_THINNING from sample EARLY_SAMPLES on; each counts
                for the elements it represents

The sample's number decides which elements are counted, so shards agree. Values of many samples are
counted together, tensor by tensor: a tensor's bins stay in the cache. The bins follow the largest
magnitude so far; widening them loses nothing.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from npumake.kernels.histogram import (
    BINS,
    MIN_EXPONENT,
    NO_BINS,
    Histogram,
    coarse,
    codes,
    exponents,
    non_empty,
    scale_of,
)
from npumake.quant.calibration.buffer_layout import Buffer, BufferLayout
from npumake.quant.calibration.minmax_observer import MinMaxObserver
from npumake.quant.calibration.subsampling import MIN_COUNTED, counted_elements

EARLY_SAMPLES = 16  # later samples count LATE_THINNING times fewer values
LATE_THINNING = 4
# Values that wait to be counted, over all threads; each thread has room for one sample at least.
MAX_WAITING_PER_TENSOR = 32 * MIN_COUNTED  # twice the memory of its bins
MAX_WAITING_VALUES = 1 << 23  # all tensors of a layout: 32 MB

Rows = npt.NDArray[np.float32]  # (samples, values)


class CountedElements:
    """The elements of a sample that are counted, `enough` of each tensor or somewhat more, and the
    number of samples that each of `threads` threads counts together."""

    def __init__(self, layout: BufferLayout, enough: int, threads: int) -> None:
        elements = [counted_elements(t.shape, enough, t.floor >= 0) for t in layout.tensors]
        ends = np.cumsum([0, *map(len, elements)]).tolist()
        self.places = np.concatenate(
            [start + element for start, element in zip(layout.starts, elements, strict=False)]
        )
        self.tensors = [slice(*ends[row : row + 2]) for row in range(len(elements))]
        # Each element counts for as many as it represents.
        self.weights = [
            round(tensor.elements / len(element))
            for tensor, element in zip(layout.tensors, elements, strict=True)
        ]
        waiting = min(MAX_WAITING_PER_TENSOR // enough, MAX_WAITING_VALUES // len(self.places))
        self.samples = max(1, waiting // threads)


class HistogramObserver:
    """The histograms of the tensors of a layout; threads add to them in any order."""

    def __init__(self, layout: BufferLayout, threads: int) -> None:
        count = len(layout.tensors)
        self.layout = layout
        self.early = CountedElements(layout, MIN_COUNTED, threads)
        self.late = CountedElements(layout, MIN_COUNTED // LATE_THINNING, threads)
        self._lock = threading.Lock()
        self._exponents = np.full(count, MIN_EXPONENT, np.int32)
        self._bins = [NO_BINS] * count  # non-empty ones of each tensor, and their counts

    def count(self, rows: Rows, counted: CountedElements, largest: Buffer) -> None:
        """Counts sampled values, (samples, values); `largest` is the largest magnitude of each
        tensor, in these rows or more."""
        with self._lock:
            self._widen(exponents(largest))
            scales = scale_of(self._exponents)
            for row, (place, weight) in enumerate(
                zip(counted.tensors, counted.weights, strict=True)
            ):
                indices = codes(rows[:, place], scales[row]).ravel()
                table = weight * np.bincount(indices, minlength=2 * BINS)
                bins, counts = self._bins[row]
                table[bins] += counts
                self._bins[row] = non_empty(table)

    def histograms(self, extremes: MinMaxObserver) -> dict[str, Histogram]:
        """The histogram of each tensor, with the extremes over the same samples."""
        low, high = extremes.by_tensor()
        return {
            tensor.name: Histogram(
                int(self._exponents[row]),
                *self._bins[row],
                float(low[row]),
                float(high[row]),
                tensor.elements * len(extremes.samples),
            )
            for row, tensor in enumerate(self.layout.tensors)
        }

    def _widen(self, needed: npt.NDArray[np.int32]) -> None:
        for row in np.flatnonzero(needed > self._exponents):
            k = int(needed[row] - self._exponents[row])
            self._bins[row] = coarse(*self._bins[row], k)
        self._exponents = np.maximum(self._exponents, needed)


class ThreadObserver:
    """Takes samples from one thread. Their sampled values wait in one array, to be counted
    together."""

    def __init__(self, histograms: HistogramObserver) -> None:
        self.extremes = MinMaxObserver(histograms.layout)
        self._histograms = histograms
        self._counted = histograms.early
        ways = (histograms.early, histograms.late)
        self._room = np.empty(max(way.samples * len(way.places) for way in ways), np.float32)
        self._waiting = 0

    def add(self, number: int, buffer: Buffer) -> None:
        """Adds the tensors of sample `number`. Raises StageError for NaN and infinity."""
        early = number < EARLY_SAMPLES
        counted = self._histograms.early if early else self._histograms.late
        if counted is not self._counted or self._waiting == counted.samples:
            self.count()
            self._counted = counted
        self.extremes.add(number, buffer)
        # With mode "wrap" NumPy writes to `out` without a copy; no place lies outside.
        row = self._rows(self._waiting + 1)[-1]
        np.take(buffer, counted.places, out=row, mode="wrap")
        self._waiting += 1

    def count(self) -> None:
        """Counts the waiting values."""
        if self._waiting:
            low, high = self.extremes.by_tensor()
            rows = self._rows(self._waiting)
            self._histograms.count(rows, self._counted, np.maximum(-low, high))
            self._waiting = 0

    def _rows(self, samples: int) -> Rows:
        place_count = len(self._counted.places)
        return self._room[: samples * place_count].reshape(samples, place_count)
