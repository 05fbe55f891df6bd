"""Histograms of magnitudes that merge exactly, in any order.

Bins are 2**e wide and start at zero; x falls into bin floor(|x| * 2**-e) of its sign's row. e is
the smallest exponent with max|x| < 16384 * 2**e. Bins of all widths are aligned:

    floor(floor(|x| * 2**-e) * 2**-k) = floor(|x| * 2**-(e + k))

So the histogram of a whole is the sum of its parts', after adding 2**k neighboring bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64

BIN_BITS = 14
BINS = 1 << BIN_BITS
MIN_EXPONENT = -126  # the exponent for all-zero data: float32's smallest normal number
BLOCK = 1 << 15  # elements whose bins stay in the cache


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of magnitudes. `counts` (2, 16384): row 0 is x < 0, row 1 is x >= 0.

    Bin j holds j * 2**exponent <= |x| < (j + 1) * 2**exponent. `low` and `high` are the exact
    extremes as float32 values; without data they are inf and -inf.
    """

    exponent: int
    counts: Int64
    low: float
    high: float
    count: int


def histogram(x: npt.NDArray[np.float32]) -> Histogram:
    """The histogram of `x`. Raises ValueError on NaN and infinity."""
    flat = np.ravel(x)
    if flat.size == 0:
        return Histogram(MIN_EXPONENT, np.zeros((2, BINS), np.int64), math.inf, -math.inf, 0)
    low, high = float(flat.min()) + 0.0, float(flat.max()) + 0.0  # + 0.0 turns -0.0 into 0.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"a histogram needs finite values, not {low} .. {high}")
    exponent = int(exponents(np.float32(max(-low, high))))
    return Histogram(exponent, _counts(flat, exponent), low, high, flat.size)


def exponents(largest: npt.NDArray[np.float32] | np.float32) -> npt.NDArray[np.int32]:
    """The bin exponent for each largest magnitude."""
    result = np.maximum(np.frexp(largest)[1] - BIN_BITS, MIN_EXPONENT)
    return np.where(largest > 0, result, MIN_EXPONENT).astype(np.int32)


def merged(a: Histogram, b: Histogram) -> Histogram:
    """The histogram of both data sets, exactly."""
    exponent = max(a.exponent, b.exponent)
    counts = coarse(a.counts, exponent - a.exponent) + coarse(b.counts, exponent - b.exponent)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Histogram(exponent, counts, low, high, a.count + b.count)


def coarse(counts: Int64, k: int) -> Int64:
    """The counts in bins 2**k times as wide: (2, 16384) again."""
    halves = counts
    for _ in range(min(k, BIN_BITS)):  # at 2**BIN_BITS all values are in bin 0
        halves = halves[:, ::2] + halves[:, 1::2]
    bins = np.zeros_like(counts)
    bins[:, : halves.shape[1]] = halves
    return bins


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
