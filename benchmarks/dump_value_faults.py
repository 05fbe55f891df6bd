"""Faults in the codes of one tensor, as a wrong driver, cable or kernel leaves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Tensor

Codes = np.ndarray
Draw = np.random.Generator


class ValueFault(NamedTuple):
    """`change` maps codes in our shape; `images` need height and width."""

    change: Callable[[Codes, Tensor, Draw], Codes]
    causes: tuple[str, ...]
    images: bool = False


def _fill(x: Codes, grid: Tensor) -> Codes:
    return np.full_like(x, np.clip(grid.zero_point, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max))


def _shift(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    dy, dx = (int(v) for v in rng.integers(-4, 5, 2))
    dy, dx = (dy, dx) if dy or dx else (0, 3)
    out, (h, w) = _fill(x, grid), x.shape[2:]
    if abs(dy) >= h // 2 or abs(dx) >= w // 2:
        dy, dx = 1, 0
    out[:, :, max(dy, 0) : h + min(dy, 0), max(dx, 0) : w + min(dx, 0)] = x[
        :, :, max(-dy, 0) : h + min(-dy, 0), max(-dx, 0) : w + min(-dx, 0)
    ]
    return out


def _roll(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    axis = int(rng.integers(2, 4))
    return np.roll(x, int(rng.integers(1, max(x.shape[axis] // 2, 2))), axis)


def _zoom_in(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    h, w = x.shape[2:]
    top, left = (h // 4, w // 4) if rng.random() < 0.5 else (0, 0)
    rows, columns = top + np.arange(h) // 2, left + np.arange(w) // 2
    return x[:, :, rows][:, :, :, columns]


def _zoom_out(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    out, half = _fill(x, grid), x[:, :, ::2, ::2]
    top, left = (x.shape[2] // 4, x.shape[3] // 4) if rng.random() < 0.5 else (0, 0)
    out[:, :, top : top + half.shape[2], left : left + half.shape[3]] = half
    return out


def _zoomed(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    factor = float(rng.choice([0.7, 0.8, 1.25, 1.5]))
    places = [((np.arange(n) + 0.5) / factor + (n - n / factor) / 2 - 0.5) for n in x.shape[2:]]
    rows, columns = (
        np.clip(np.rint(p), 0, n - 1).astype(int) for p, n in zip(places, x.shape[2:], strict=True)
    )
    return x[:, :, rows][:, :, :, columns]


def _box(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A part that was never written."""
    out, axis = x.copy(), int(rng.integers(1, x.ndim))
    n = x.shape[axis]
    begin, end = sorted(int(v) for v in rng.choice(n + 1, 2, replace=False))
    part = (slice(None),) * axis + (slice(begin, end),)
    out[part] = int(rng.choice([0, 85, grid.zero_point]))
    return out


def _tile(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Rows written twice: the upper half again below."""
    out, h = x.copy(), x.shape[2] // 2
    out[:, :, h : 2 * h] = x[:, :, :h]
    return out


def _offset(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return np.roll(x.ravel(), int(rng.integers(1, max(x.size // 3, 2)))).reshape(x.shape)


def _bit(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    mask = x.dtype.type(1 << int(rng.integers(2, 8 * x.dtype.itemsize - 1)))
    ways = (x & ~mask, x | mask, x ^ mask)
    return np.asarray(ways[int(rng.integers(3))], x.dtype)


def _wrapped(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Codes twice as large that wrap around."""
    steps = (x.astype(np.int64) - grid.zero_point) * 2 + grid.zero_point
    return steps.astype(x.dtype)


def _words(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    size = int(rng.choice([2, 4, 8]))
    flat = x.ravel().copy()
    whole = flat.size // size * size
    flat[:whole] = flat[:whole].reshape(-1, size)[:, ::-1].ravel()
    return flat.reshape(x.shape)


def _grouped(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Channels interleaved by groups."""
    groups = next((g for g in (2, 4, 3) if x.shape[1] % g == 0 and x.shape[1] > g), 1)
    order = np.arange(x.shape[1]).reshape(groups, -1).T.ravel()
    return x[:, order]


def _negated(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return codes_of(2 * grid.zero_point - x.astype(np.int64), grid)


def _relu(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return np.maximum(x, x.dtype.type(grid.zero_point))


def _absolute(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return codes_of(np.abs(x.astype(np.int64) - grid.zero_point) + grid.zero_point, grid)


def _one_more(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A zero point one away; zeros of a Relu stay where half of them round to."""
    step = int(rng.choice([-1, 1]))
    out = codes_of(x.astype(np.int64) + step, grid)
    stay = (x == x.min()) & (rng.random(x.shape) < 0.5)
    return np.where(stay, x, out)


def _coarse(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Truncated to fewer bits, about the zero point."""
    bits = int(rng.integers(1, 4)) + (8 if x.dtype.itemsize == 2 else 1)
    steps = x.astype(np.int64) - grid.zero_point
    return codes_of((steps >> bits << bits) + grid.zero_point, grid)


def _rows_padded(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Channels padded to 16 or 32 in memory, NHWC, dumped as if they were not."""
    last = x.transpose(0, 2, 3, 1)
    length = -(-x.shape[1] // 16) * 16
    length = length if length != x.shape[1] else length + 16
    wide = np.zeros((*last.shape[:3], length), x.dtype)
    wide[..., : x.shape[1]] = last
    return np.ascontiguousarray(wide.ravel()[: x.size].reshape(last.shape).transpose(0, 3, 1, 2))


def _channel_noise(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Two channels of another picture."""
    out = x.copy()
    for channel in rng.choice(x.shape[1], 2, replace=False):
        out[:, channel] = rng.permutation(x[:, channel].ravel()).reshape(x[:, channel].shape)
    return out


def _factors(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    each = rng.uniform(0.5, 1.5, (1, x.shape[1], *(1 for _ in x.shape[2:])))
    return codes_of((x.astype(np.int64) - grid.zero_point) * each + grid.zero_point, grid)


def _small_scale(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    factor = float(rng.choice([0.9, 0.93, 1.07, 1.1]))
    return codes_of((x.astype(np.int64) - grid.zero_point) * factor + grid.zero_point, grid)


def codes_of(values: np.ndarray, grid: Tensor) -> Codes:
    limits = np.iinfo(grid.dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(grid.dtype)


ORIENTED, SHIFTS = ("orientation", "layout"), ("shift", "padding", "offset")
VALUES: Mapping[str, ValueFault] = {
    "mirrored": ValueFault(lambda x, g, r: np.flip(x, 3), ORIENTED, True),
    "upside down": ValueFault(lambda x, g, r: np.flip(x, 2), ORIENTED, True),
    "turned by 180": ValueFault(lambda x, g, r: np.flip(x, (2, 3)), ORIENTED, True),
    "turned by 90": ValueFault(
        lambda x, g, r: np.rot90(x, int(r.choice([1, 3])), (2, 3)), ORIENTED, True
    ),
    "shifted": ValueFault(_shift, SHIFTS, True),
    "rolled": ValueFault(_roll, SHIFTS, True),
    "zoomed in": ValueFault(_zoom_in, ("zoom",), True),
    "zoomed out": ValueFault(_zoom_out, ("zoom",), True),
    "zoomed": ValueFault(_zoomed, ("zoom",), True),
    "part unwritten": ValueFault(_box, ("uninitialized", "partial")),
    "tile twice": ValueFault(_tile, ("partial", "stale"), True),
    "offset": ValueFault(_offset, SHIFTS),
    "bit": ValueFault(_bit, ("bits", "width", "zero_point")),
    "wrapped": ValueFault(_wrapped, ("overflow", "scale")),
    "words": ValueFault(_words, ("byte_order",)),
    "grouped channels": ValueFault(_grouped, ("channel_order", "layout"), True),
    "negated": ValueFault(_negated, ("sign", "scale")),
    "relu added": ValueFault(_relu, ("activation", "clipped")),
    "absolute": ValueFault(_absolute, ("sign", "activation")),
    "zero point by one": ValueFault(_one_more, ("zero_point",)),
    "fewer bits": ValueFault(_coarse, ("width",)),
    "padded channels": ValueFault(_rows_padded, ("padding",), True),
    "some channels": ValueFault(_channel_noise, ("weights", "partial"), True),
    "factors of channels": ValueFault(_factors, ("scale",), True),
    "small scale": ValueFault(_small_scale, ("scale",)),
}
