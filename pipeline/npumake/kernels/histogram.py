"""Histograms of magnitudes that merge exactly, in any order.

Bins are 2**e wide and start at zero; x falls into bin floor(|x| * 2**-e) of its sign's row. e is
the smallest exponent with max|x| < 16384 * 2**e. Bins of all widths are aligned:

    floor(floor(|x| * 2**-e) * 2**-k) = floor(|x| * 2**-(e + k))

So the histogram of a whole is the sum of its parts', after adding 2**k neighboring bins.

Only non-empty bins are stored: a histogram of few values takes few bytes, so a model may have tens
of thousands of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64

Int32 = npt.NDArray[np.int32]

BIN_BITS = 14
BINS = 1 << BIN_BITS
MIN_EXPONENT = -126  # the exponent for all-zero data: float32's smallest normal number
BLOCK = 1 << 15  # elements whose bins stay in the cache
NO_BINS = np.zeros(0, np.int32), np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of magnitudes, in bins of two rows: row 0 is x < 0, row 1 is x >= 0.

    Bin j of a row has j * 2**exponent <= |x| < (j + 1) * 2**exponent. `bins` (n,) are the flat
    indices of the non-empty bins, rising, and `bin_counts` (n,) their counts. `low` and `high` are
    the exact extremes as float32 values; without data they are inf and -inf.
    """

    exponent: int
    bins: Int32
    bin_counts: Int64
    low: float
    high: float
    count: int

    @property
    def counts(self) -> Int64:
        """The counts of all bins, (2, 16384), a new array."""
        table = np.zeros(2 * BINS, np.int64)
        table[self.bins] = self.bin_counts
        return table.reshape(2, BINS)


def histogram(x: npt.NDArray[np.float32]) -> Histogram:
    """The histogram of `x`. Raises ValueError on NaN and infinity."""
    flat = np.ravel(x)
    if flat.size == 0:
        return Histogram(MIN_EXPONENT, *NO_BINS, math.inf, -math.inf, 0)
    low, high = float(flat.min()) + 0.0, float(flat.max()) + 0.0  # + 0.0 turns -0.0 into 0.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"a histogram needs finite values, not {low} .. {high}")
    exponent = int(exponents(np.float32(max(-low, high))))
    return Histogram(exponent, *non_empty(_counts(flat, exponent)), low, high, flat.size)


def non_empty(counts: Int64) -> tuple[Int32, Int64]:
    """The flat indices of the non-empty bins, rising, and their counts, both (n,)."""
    flat = counts.reshape(-1)
    bins = np.flatnonzero(flat)
    return bins.astype(np.int32), flat[bins]


def exponents(largest: npt.NDArray[np.float32] | np.float32) -> npt.NDArray[np.int32]:
    """The bin exponent for each largest magnitude."""
    result = np.maximum(np.frexp(largest)[1] - BIN_BITS, MIN_EXPONENT)
    return np.where(largest > 0, result, MIN_EXPONENT).astype(np.int32)


def merged(a: Histogram, b: Histogram) -> Histogram:
    """The histogram of both data sets, exactly."""
    exponent = max(a.exponent, b.exponent)
    parts = [coarse(h.bins, h.bin_counts, exponent - h.exponent) for h in (a, b)]
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Histogram(exponent, *non_empty(_summed(*parts)), low, high, a.count + b.count)


def coarse(bins: Int32, counts: Int64, k: int) -> tuple[Int32, Int64]:
    """The non-empty bins, 2**k times as wide, and their counts."""
    if k == 0:
        return bins, counts
    wide = bins & BINS | (bins & BINS - 1) >> min(k, BIN_BITS)
    return non_empty(_summed((wide, counts)))


def _summed(*parts: tuple[Int32, Int64]) -> Int64:
    """The counts of all bins, (32768,), over parts that may share bins."""
    table = np.zeros(2 * BINS, np.int64)
    for bins, counts in parts:
        np.add.at(table, bins, counts)
    return table


def scale_of(exponent: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The factor from values to bins: a power of two, exact or far below one."""
    return np.ldexp(np.float32(1), -np.asarray(exponent, np.int32))


def codes(x: npt.NDArray[np.float32], scale: npt.NDArray[np.float32] | np.float32) -> Int64:
    """The flat bin index in `counts` of each value."""
    return (np.abs(x) * scale).astype(np.int64) + BINS * (x >= 0)


def _counts(flat: npt.NDArray[np.float32], exponent: int) -> Int64:
    table = np.zeros(2 * BINS, np.int64)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        table += np.bincount(codes(block, scale_of(exponent)), minlength=2 * BINS)
    return table.reshape(2, BINS)
