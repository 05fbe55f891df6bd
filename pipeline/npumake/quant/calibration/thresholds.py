"""Thresholds: from a histogram to T, the magnitude above which values saturate. METHODS is the
table.

max             T = max|x|
max_percentile  T = the smallest bin edge with a share p of all magnitudes below it
mse             of MSE_THRESHOLDS values of T, the one with the least sum (x - q(x))**2 over the
                bins; q is the 8-bit grid over -T..T, or over its non-empty part
kl              T with the least information loss (TensorRT's entropy calibration: S. Migacz,
                8-bit Inference with TensorRT, GTC 2017)

For kl, with h the histogram of magnitudes and N its sum: for each candidate i, P is the first i
bins with all outliers added to the last, and Q the first i bins pooled into INT8_LEVELS equal
chunks, each chunk's mass spread evenly over its non-empty bins. T is the edge after the i that
minimises

    KL(P || Q) = sum P log(P / Q)

which is infinite if outliers were added to an empty bin. A candidate also loses if the outliers
exceed the share of one level, N / INT8_LEVELS: KL ignores the size of values, and would cut the
large fifth off a sparse tensor deep in a network.

Bin 0 takes the count of bin 1, as in NVIDIA's own calibrators: after a ReLU half of all values are
zero, which every T represents exactly. Their count would outweigh all others and make T several
times too small.

Within a chunk Q is constant, so the sum splits into prefix sums: sum P log P over bins and (mass of
P) * log Q per chunk. All candidates with finite divergence form one table of (candidates,
INT8_LEVELS). Above MAX_KL_CANDIDATES bins only every 2nd, 4th, ... is a candidate, which bounds the
table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.kernels.arrays import Floats
from npumake.kernels.histogram import BINS, Histogram
from npumake.project.sections import Calibration

INT8_LEVELS = 128  # magnitudes of an int8 grid
MAX_KL_CANDIDATES = 2048
MSE_THRESHOLDS = 64  # thresholds of mse
MSE_BINS = 2048
MIN_STEP = 2.0**-100  # a smaller step means a range of zeros

Method = Callable[[Histogram, Calibration, bool], float]


def threshold(statistics: Histogram, calibration: Calibration, symmetric: bool = False) -> float:
    """The threshold by the calibration's method; 0 for all zeros. `symmetric`: the
    grid will be."""
    largest = max(-statistics.low, statistics.high, 0.0)
    return min(METHODS[calibration.method](statistics, calibration, symmetric), largest)


def _max(statistics: Histogram, _: Calibration, __: bool) -> float:
    return max(-statistics.low, statistics.high)


def _max_percentile(statistics: Histogram, calibration: Calibration, _: bool) -> float:
    below = np.cumsum(statistics.counts.sum(axis=0))
    bins = int(np.searchsorted(below, calibration.percentile * below[-1])) + 1
    return float(np.ldexp(float(bins), statistics.exponent))


def _mse(statistics: Histogram, _: Calibration, symmetric: bool) -> float:
    tried = (
        _max(statistics, Calibration(), symmetric)
        * np.arange(1, MSE_THRESHOLDS + 1)
        / MSE_THRESHOLDS
    )
    if not tried[-1] > 0:
        return 0.0
    low, high = np.maximum(statistics.low, -tried), np.minimum(statistics.high, tried)
    return float(tried[int(np.argmin(noise(statistics, low, high, symmetric)))])


def noise(statistics: Histogram, low: Floats, high: Floats, symmetric: bool) -> Floats:
    """sum (x - q(x))**2 over the bins, for 8-bit grids over each low..high, (ranges,)."""
    counts = statistics.counts.reshape(2, MSE_BINS, -1).sum(axis=2)
    middles = np.ldexp((np.arange(MSE_BINS) + 0.5) * (BINS // MSE_BINS), statistics.exponent)
    filled = counts > 0
    x, weight = np.stack([-middles, middles])[filled], counts[filled]
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if symmetric:
        low, high = -np.maximum(-low, high), np.maximum(-low, high)
    step = np.maximum((high - low) / (254 if symmetric else 255), MIN_STEP)[:, None]
    q = np.clip(np.rint(x / step) * step, low[:, None], high[:, None])
    return ((x - q) ** 2 * weight).sum(axis=1)


def _kl(statistics: Histogram, calibration: Calibration, _: bool) -> float:
    width = BINS // calibration.bins
    counts = statistics.counts.sum(axis=0).reshape(-1, width).sum(axis=1).astype(np.float64)
    counts[0] = counts[1]
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    if used <= INT8_LEVELS:
        return _max(statistics, calibration, False)
    candidates = np.arange(used, INT8_LEVELS - 1, -max(calibration.bins // MAX_KL_CANDIDATES, 1))[
        ::-1
    ]
    finite = _finite(counts[:used], candidates)
    best = float(finite[int(np.argmin(_divergences(counts[:used], finite)))])
    return float(np.ldexp(best * width, statistics.exponent))


def _finite(h: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The candidates with finite divergence; the last, all of `h`, is always one."""
    total, last = h.sum(), h[candidates - 1]
    outliers = total - np.cumsum(h)[candidates - 1]
    return candidates[((last > 0) | (outliers == 0)) & (outliers <= total / INT8_LEVELS)]


def _divergences(h: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """KL(P || Q) of the first i bins of `h`, for each i in `candidates`."""
    total = h.sum()
    mass = np.concatenate([[0.0], np.cumsum(h)])
    filled = np.concatenate([[0], np.cumsum(h > 0)])
    entropy = np.concatenate([[0.0], np.cumsum(_xlogx(h / total))])

    inside, last = mass[candidates], h[candidates - 1]
    outliers = total - inside
    # P differs from h in its last bin only.
    p_log_p = entropy[candidates] - _xlogx(last / total) + _xlogx((last + outliers) / total)

    bounds = candidates[:, None] * np.arange(INT8_LEVELS + 1) // INT8_LEVELS
    chunk_mass = np.diff(mass[bounds], axis=1)
    chunk_bins = np.diff(filled[bounds], axis=1)
    q = chunk_mass / np.maximum(chunk_bins, 1) / np.maximum(inside, 1)[:, None]
    log_q = np.log(q, where=q > 0, out=np.zeros_like(q))
    p_log_q = (chunk_mass / total * log_q).sum(axis=1)
    return p_log_p - p_log_q - outliers / total * log_q[:, -1]


def _xlogx(p: np.ndarray) -> np.ndarray:
    return p * np.log(p, where=p > 0, out=np.zeros_like(p))


METHODS: dict[str, Method] = {
    "kl": _kl,
    "max": _max,
    "max_percentile": _max_percentile,
    "mse": _mse,
    "skip": _max,
    "standard": _max,
}

assert BINS % MAX_KL_CANDIDATES == 0
