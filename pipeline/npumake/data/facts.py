"""Facts about each sample, from which the set is judged: digest, ranges, constant margins.

Memory is O(samples x channels); the samples' values are not stored.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np

from npumake import digest

MAX_CHANNELS = 64  # an axis that is longer holds features rather than channels
SIDES = ("top", "bottom", "left", "right")


class ValueRange(NamedTuple):
    """The smallest and the largest value."""

    low: float
    high: float

    @property
    def is_constant(self) -> bool:
        return self.low == self.high


class Margin(NamedTuple):
    """Constant lines along one side of an image; `value` has one number per channel."""

    lines: int
    value: tuple[float, ...]


class Fact(NamedTuple):
    """One sample. `size` is its number of values, `channels` the range of each channel, `margins`
    one per SIDES or empty for other data than images, `dtype` the type in its file."""

    name: str
    digest: str
    low: float
    high: float
    size: int
    channels: tuple[ValueRange, ...] = ()
    margins: tuple[Margin, ...] = ()
    dtype: str = ""


def fact(name: str, array: np.ndarray, layout: str = "NCHW") -> Fact:
    """The facts about an array as stored, before the offset; `layout` is NCHW or NHWC."""
    values = np.ascontiguousarray(array)
    low, high = float(values.min()), float(values.max())
    channels_last = _channels_last(values, layout)
    content = digest.of_bytes(values.tobytes())
    if channels_last is None:
        return Fact(name, content, low, high, values.size, dtype=values.dtype.name)
    channels = tuple(_ranges(channels_last))
    margins = _margins(channels_last) if channels_last.ndim == 4 and low != high else ()
    return Fact(name, content, low, high, values.size, channels, margins, values.dtype.name)


def _channels_last(values: np.ndarray, layout: str) -> np.ndarray | None:
    """(N, ..., C); None if no axis holds channels with several values each."""
    if values.ndim < 3:
        return None
    channels_last = values if layout == "NHWC" else np.moveaxis(values, 1, -1)
    channels = channels_last.shape[-1]
    return channels_last if channels <= MAX_CHANNELS and channels_last.size > channels else None


def _ranges(values: np.ndarray) -> list[ValueRange]:
    flat = values.reshape(-1, values.shape[-1])
    return [
        ValueRange(float(low), float(high))
        for low, high in zip(flat.min(axis=0), flat.max(axis=0), strict=True)
    ]


def _margins(values: np.ndarray) -> tuple[Margin, ...]:
    """The margins in the order of SIDES; `values` is (N, H, W, C)."""
    rows, columns = np.moveaxis(values, 1, 0), np.moveaxis(values, 2, 0)
    return tuple(_margin(lines) for lines in (rows, rows[::-1], columns, columns[::-1]))


def _margin(lines: np.ndarray) -> Margin:
    """The leading constant lines of (lines, N, other axis, C), with their value per channel."""
    value = lines[0].reshape(-1, lines.shape[-1])[0]
    count = sum(1 for _ in takewhile(lambda line: (line == value).all(), lines))
    return Margin(count, tuple(value.tolist()) if count else ())
