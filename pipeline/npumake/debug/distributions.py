"""Distributions of a tensor's values, per tensor and per channel.

Values are counted in bins, so memory does not grow with samples. A channel's quantiles are exact
to 1 / CHANNEL_BINS of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.errors import GraphError
from npumake.kernels.histogram import Histogram, histogram, scale_of

CHANNEL_BINS = 1024
BARS = 128  # of one sign, at most

Floats = npt.NDArray[np.float64]


class Bars(NamedTuple):
    """`counts[i]` values lie between `edges[i]` and `edges[i + 1]`; `largest` is a magnitude."""

    edges: Floats
    counts: Floats
    largest: float


class Boxes(NamedTuple):
    """Extremes, quartiles and mean of every channel; arrays of shape (channels,)."""

    low: Floats
    quarter: Floats
    median: Floats
    three_quarters: Floats
    high: Floats
    mean: Floats


def counted(array: np.ndarray) -> Histogram:
    """Raises GraphError for NaN and infinity."""
    try:
        return histogram(array.astype(np.float32))
    except ValueError as error:
        raise GraphError(str(error), hint="the model overflows on these samples") from error


def bars(total: Histogram) -> Bars:
    """At most BARS bars per sign over the range of the values."""
    used = np.flatnonzero(total.counts.any(axis=0))
    last = int(used[-1]) + 1 if used.size else 1
    width = -(-last // BARS)
    sides = [_wide(row[: width * BARS], width) for row in total.counts]
    count = -(-last // width)
    step = width / float(scale_of(total.exponent))
    counts = np.concatenate([sides[0][:count][::-1], sides[1][:count]])
    edges = np.arange(-count, count + 1, dtype=np.float64) * step
    return Bars(edges, counts.astype(np.float64), max(-total.low, total.high))


def boxes(arrays: Callable[[], Iterator[np.ndarray]], axis: int | None = None) -> Boxes:
    """Boxes per channel along `axis`, by default the second axis, or the only one; a scalar is one
    channel. `arrays` is called twice. Raises GraphError for a missing axis and for values that
    are not finite."""
    low = high = total = np.zeros(0)
    count = 0
    for number, rows in enumerate(_channels(arrays(), axis)):
        if number == 0:
            low, high = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
            total = np.zeros(len(rows))
        low, high = np.minimum(low, rows.min(axis=1)), np.maximum(high, rows.max(axis=1))
        total, count = total + rows.sum(axis=1), count + rows.shape[1]
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        raise GraphError("values that are not finite")
    width = np.where(high > low, high - low, 1.0) / CHANNEL_BINS
    starts = np.arange(len(low))[:, None] * CHANNEL_BINS
    counts = np.zeros(len(low) * CHANNEL_BINS, np.int64)
    for rows in _channels(arrays(), axis):
        places = np.minimum((rows - low[:, None]) / width[:, None], CHANNEL_BINS - 1)
        counts += np.bincount((places.astype(np.int64) + starts).ravel(), minlength=counts.size)
    below = np.cumsum(counts.reshape(len(low), CHANNEL_BINS), axis=1)

    def quantile(share: float) -> Floats:
        places = (below < share * count).sum(axis=1)
        return np.clip(low + (places + 0.5) * width, low, high)

    return Boxes(low, quantile(0.25), quantile(0.5), quantile(0.75), high, total / max(count, 1))


def _channels(arrays: Iterable[np.ndarray], axis: int | None) -> Iterator[Floats]:
    """Each array as (channels, values)."""
    for array in map(np.atleast_1d, arrays):
        at = min(1, array.ndim - 1) if axis is None else axis
        if not -array.ndim <= at < array.ndim:
            raise GraphError(f"no axis {axis} in a tensor of shape {list(array.shape)}")
        rows = np.moveaxis(array, at, 0)
        yield rows.reshape(len(rows), -1).astype(np.float64)


def _wide(row: np.ndarray, width: int) -> np.ndarray:
    """Sums of `width` neighboring bins."""
    padded = np.zeros(width * BARS, row.dtype)
    padded[: len(row)] = row
    return padded.reshape(BARS, width).sum(axis=1)
