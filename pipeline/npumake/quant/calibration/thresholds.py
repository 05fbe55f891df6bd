"""From statistics to a threshold T: magnitudes above it saturate. METHODS is the table.

max             T = max|x|
max_percentile  T = the smallest bin edge with a share p of all magnitudes below it
mse             T of 64 that gives the least sum (x - q(x))**2 over the bins, with q the grid of 8
                bits that T leaves: -T..T, or what there is of it on either side of zero
kl              T that loses the least information (TensorRT's entropy calibration: S. Migacz,
                8-bit Inference with TensorRT, GTC 2017)

For kl, with h the histogram of magnitudes and N its sum: for each candidate i, P is the first i
bins with all outliers added to the last, and Q the first i bins pooled into LEVELS equal chunks,
each chunk's mass spread evenly over its non-empty bins. T is the edge after the i that minimises

    KL(P || Q) = sum P log(P / Q)

which is infinite where outliers were added to an empty bin, and where they are more than the share
of one level, N / LEVELS: KL weighs how often values occur, not how large they are, and of a sparse
tensor deep in a network it would cut off the large fifth that carries what was found.

The count of bin 0 is taken to be that of bin 1, as NVIDIA's own calibrators do: after a ReLU half
of all values are zero, which every T represents exactly; left in, they outweigh all others, and T
comes out several times too small.

Within a chunk Q is one number, so the sum falls apart into prefix sums: sum P log P over bins and
(mass of P) * log Q per chunk. All candidates whose divergence is finite are evaluated as one table
of (candidates, LEVELS); of more than CANDIDATES bins every 2nd, 4th, ... is one, so that the table
is never larger.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.kernels.arrays import Floats
from npumake.kernels.histogram import BINS, Histogram
from npumake.project.sections import Calibration

LEVELS = 128  # magnitudes of an int8 grid
CANDIDATES = 2048
TRIED = 64  # thresholds of mse
MSE_BINS = 2048
SMALLEST = 2.0**-100  # a step below it is a range of zeros

Method = Callable[[Histogram, Calibration, bool], float]


def threshold(statistics: Histogram, calibration: Calibration, symmetric: bool = False) -> float:
    """The magnitude above which values saturate, by the calibration's method; 0 for all zeros.

    `symmetric` says of the grid to come whether zero is its middle."""
    largest = max(-statistics.low, statistics.high, 0.0)
    return min(METHODS[calibration.method](statistics, calibration, symmetric), largest)


def _max(statistics: Histogram, _: Calibration, __: bool) -> float:
    return max(-statistics.low, statistics.high)


def _max_percentile(statistics: Histogram, calibration: Calibration, _: bool) -> float:
    below = np.cumsum(statistics.counts.sum(axis=0))
    bins = int(np.searchsorted(below, calibration.percentile * below[-1])) + 1
    return float(np.ldexp(float(bins), statistics.exponent))


def _mse(statistics: Histogram, _: Calibration, symmetric: bool) -> float:
    tried = _max(statistics, Calibration(), symmetric) * np.arange(1, TRIED + 1) / TRIED
    if not tried[-1] > 0:
        return 0.0
    low, high = np.maximum(statistics.low, -tried), np.minimum(statistics.high, tried)
    return float(tried[int(np.argmin(noise(statistics, low, high, symmetric)))])


def noise(statistics: Histogram, low: Floats, high: Floats, symmetric: bool) -> Floats:
    """sum (x - q(x))**2 over the bins, for grids of 8 bits over each low..high, (ranges,)."""
    counts = statistics.counts.reshape(2, MSE_BINS, -1).sum(axis=2)
    middles = np.ldexp((np.arange(MSE_BINS) + 0.5) * (BINS // MSE_BINS), statistics.exponent)
    filled = counts > 0
    x, weight = np.stack([-middles, middles])[filled], counts[filled]
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if symmetric:
        low, high = -np.maximum(-low, high), np.maximum(-low, high)
    step = np.maximum((high - low) / (254 if symmetric else 255), SMALLEST)[:, None]
    q = np.clip(np.rint(x / step) * step, low[:, None], high[:, None])
    return ((x - q) ** 2 * weight).sum(axis=1)


def _kl(statistics: Histogram, calibration: Calibration, _: bool) -> float:
    width = BINS // calibration.bins
    counts = statistics.counts.sum(axis=0).reshape(-1, width).sum(axis=1).astype(np.float64)
    counts[0] = counts[1]
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    if used <= LEVELS:
        return _max(statistics, calibration, False)
    candidates = np.arange(used, LEVELS - 1, -max(calibration.bins // CANDIDATES, 1))[::-1]
    finite = _finite(counts[:used], candidates)
    best = float(finite[int(np.argmin(_divergences(counts[:used], finite)))])
    return float(np.ldexp(best * width, statistics.exponent))


def _finite(h: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Those of `candidates` whose divergence is not infinite; the last, all of `h`, is one."""
    total, last = h.sum(), h[candidates - 1]
    outliers = total - np.cumsum(h)[candidates - 1]
    return candidates[((last > 0) | (outliers == 0)) & (outliers <= total / LEVELS)]


def _divergences(h: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """KL(P || Q) for keeping the first i bins of `h`, for each i in `candidates`."""
    total = h.sum()
    mass = np.concatenate([[0.0], np.cumsum(h)])
    filled = np.concatenate([[0], np.cumsum(h > 0)])
    entropy = np.concatenate([[0.0], np.cumsum(_xlogx(h / total))])

    inside, last = mass[candidates], h[candidates - 1]
    outliers = total - inside
    # P differs from h in its last bin only.
    p_log_p = entropy[candidates] - _xlogx(last / total) + _xlogx((last + outliers) / total)

    bounds = candidates[:, None] * np.arange(LEVELS + 1) // LEVELS
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

assert BINS % CANDIDATES == 0
