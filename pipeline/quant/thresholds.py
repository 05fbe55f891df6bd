"""From statistics to a threshold T: magnitudes above it saturate. METHODS is the table.

max             T = max|x|
max_percentile  T = the smallest bin edge with a share p of all magnitudes below it
kl              T that loses the least information (TensorRT's entropy calibration: S. Migacz,
                8-bit Inference with TensorRT, GTC 2017)

For kl, with h the histogram of magnitudes and N its sum: for each candidate i, P is the first i
bins with all outliers added to the last, and Q the first i bins pooled into LEVELS equal chunks,
each chunk's mass spread evenly over its non-empty bins. T is the edge after the i that minimises

    KL(P || Q) = sum P log(P / Q)

which is infinite where outliers were added to an empty bin. The count of bin 0 is taken to be that
of bin 1, as NVIDIA's own calibrators do: after a ReLU half of all values are zero, which every T
represents exactly; left in, they outweigh all others, and T comes out several times too small.

Within a chunk Q is one number, so the sum falls apart into prefix sums: sum P log P over bins and
(mass of P) * log Q per chunk. All candidates are evaluated as one table of (candidates, LEVELS).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.kernels.histogram import BINS, Histogram
from pipeline.project.sections import Calibration

LEVELS = 128  # magnitudes of an int8 grid


def threshold(statistics: Histogram, calibration: Calibration) -> float:
    """The magnitude above which values saturate, by the calibration's method; 0 for all zeros."""
    largest = max(-statistics.low, statistics.high, 0.0)
    return min(METHODS[calibration.method](statistics, calibration), largest)


def _max(statistics: Histogram, _: Calibration) -> float:
    return max(-statistics.low, statistics.high)


def _max_percentile(statistics: Histogram, calibration: Calibration) -> float:
    below = np.cumsum(statistics.counts.sum(axis=0))
    bins = int(np.searchsorted(below, calibration.percentile * below[-1])) + 1
    return _edge(statistics, bins)


def _kl(statistics: Histogram, _: Calibration) -> float:
    counts = statistics.counts.sum(axis=0).astype(np.float64)
    counts[0] = counts[1]
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    if used <= LEVELS:
        return _max(statistics, Calibration())
    candidates = np.arange(LEVELS, used + 1)
    divergence = _divergences(counts[:used], candidates)
    return _edge(statistics, int(candidates[int(np.argmin(divergence))]))


def _edge(statistics: Histogram, bins: int) -> float:
    return float(np.ldexp(float(bins), statistics.exponent))


def _divergences(h: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """KL(P || Q) for keeping the first i bins of `h`, for each i in `candidates`."""
    total = h.sum()
    mass = np.concatenate([[0.0], np.cumsum(h)])
    filled = np.concatenate([[0], np.cumsum(h > 0)])
    entropy = np.concatenate([[0.0], np.cumsum(_xlogx(h / total))])

    kept, last = mass[candidates], h[candidates - 1]
    outliers = total - kept
    # P differs from h in its last bin only.
    p_log_p = entropy[candidates] - _xlogx(last / total) + _xlogx((last + outliers) / total)

    bounds = candidates[:, None] * np.arange(LEVELS + 1) // LEVELS
    chunk_mass = np.diff(mass[bounds], axis=1)
    chunk_bins = np.diff(filled[bounds], axis=1)
    q = chunk_mass / np.maximum(chunk_bins, 1) / np.maximum(kept, 1)[:, None]
    log_q = np.log(q, where=q > 0, out=np.zeros_like(q))
    p_log_q = (chunk_mass / total * log_q).sum(axis=1)
    divergence = p_log_p - p_log_q - outliers / total * log_q[:, -1]
    return np.where((last == 0) & (outliers > 0), np.inf, divergence)


def _xlogx(p: np.ndarray) -> np.ndarray:
    return p * np.log(p, where=p > 0, out=np.zeros_like(p))


METHODS: dict[str, Callable[[Histogram, Calibration], float]] = {
    "kl": _kl,
    "max": _max,
    "max_percentile": _max_percentile,
}

assert BINS > LEVELS
