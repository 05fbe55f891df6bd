"""int16 functions of TensorFlow Lite's reference kernels: short tables with interpolation.

Sigmoid, for x = |q * M| in units of 1 / (24 * 2**9), with T[i] ~ 2**16 * sigmoid(i / 24):

    u = x >> 9    t = x & 511    sigmoid(x) = (T[u] * 2**9 + t * (T[u + 1] - T[u])) / 2**25

and tanh(x) = 2 * sigmoid(2 * x) - 1 from the same table. Both return codes of scale 2**-15.

Softmax has tables of 513 codes of scale 2**-15, for exp on [-10, 0] and 1 / (1 + x) on [0, 1].
Entries are shifted by half the interpolation error in the middle of their interval. Source:
tensorflow/lite/kernels/internal (common.h, reference/softmax.h, integer_ops).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.kernels.arrays import Floats, Int64, Ints
from npumake.kernels.rounding import fixed_point, rescale

STEPS = 512  # intervals of a table over all of int16
CODES = 1 << 15
EXP_REACH = 10.0  # exp below -10 counts as 0
SATURATED = 255  # the last entry of the sigmoid's table


def sigmoid(q: Ints, scale: float) -> Int64:
    """Codes of scale 2**-15, zero point 0, for codes `q` of this scale."""
    x = _scaled(q, scale)
    values = _between(np.abs(x), 9)
    values = np.where(np.abs(x) >> 9 >= SATURATED, 0x7FFF << 10, values)
    return np.where(x >= 0, values + (1 << 9), (1 << 25) - values + (1 << 9) - 1) >> 10


def tanh(q: Ints, scale: float) -> Int64:
    """Codes of scale 2**-15, zero point 0, for codes `q` of this scale."""
    x = _scaled(q, scale)
    values = _between(np.abs(x), 8)
    values = np.where(np.abs(x) >> 8 >= SATURATED, 0xFFFF << 8, values) - (1 << 23)
    return np.where(x >= 0, values + (1 << 7), -values + (1 << 7) - 1) >> 8


def softmax(q: Ints, scale: float, axis: int) -> Int64:
    """Codes of scale 2**-15, zero point 0, along `axis`, for codes `q` of this scale."""
    unit = EXP_REACH / (2 * CODES - 1)
    diff = q.astype(np.int64) - q.max(axis=axis, keepdims=True)
    away = rescale(diff, fixed_point(float(np.float32(scale)) / unit), "twice") + CODES - 1
    powers = _looked_up(np.clip(away, -CODES, CODES - 1), EXP)
    total = powers.sum(axis=axis, keepdims=True)
    headroom = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    part = ((total << (headroom - 1)) + (1 << 13)) >> 14
    inverse = _looked_up(np.clip(part - 3 * CODES, -CODES, CODES - 1), INVERSE)
    right = 31 - headroom
    quotients = (powers * inverse + (np.int64(1) << (right - 1))) >> right
    return np.clip(quotients, 0, CODES - 1)


def _scaled(q: Ints, scale: float) -> Int64:
    """q * scale in units of 1 / (3 * 4096), with a 15-bit factor."""
    factor, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2.0, shift + 1
    half = (1 << shift) >> 1
    return (q.astype(np.int64) * int(factor) + half) >> shift


def _between(x: Int64, bits: int) -> Int64:
    at = np.minimum(x >> bits, SATURATED - 1)
    low, high = SIGMOIDS[at], SIGMOIDS[at + 1]
    return (low << bits) + (x & ((1 << bits) - 1)) * (high - low)


def _sigmoids() -> Int64:
    ends, middles = (65536.0 / (1.0 + np.exp(-np.arange(257) / 24.0 - d / 48.0)) for d in (0, 1))
    off = middles[:-1] - (ends[:-1] + ends[1:]) / 2
    table = np.rint(ends[:-1] + off / 2).astype(np.int64)
    table[SATURATED] = 0xFFFF  # as for everything beyond
    return table


def _table(low: float, high: float, f: Callable[[Floats], Floats]) -> Int64:
    step = (high - low) / STEPS
    ends, middles = low + np.arange(STEPS + 1) * step, low + (np.arange(STEPS) + 0.5) * step
    values, middle = f(ends) * CODES, _rounded(f(middles) * CODES)
    line = _rounded((values[1:] + _rounded(values[:-1])) / 2)
    codes = _rounded(values)
    codes[:-1] -= _rounded((line - middle) / 2)
    return np.clip(codes, -CODES, CODES - 1).astype(np.int64)


def _rounded(x: Floats) -> Floats:
    """Half away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


def _looked_up(q: Int64, table: Int64) -> Int64:
    at = (q >> 7) + STEPS // 2
    return table[at] + (((table[at + 1] - table[at]) * (q & 127) + 64) >> 7)


SIGMOIDS = _sigmoids()
EXP = _table(-EXP_REACH, 0.0, np.exp)
INVERSE = _table(0.0, 1.0, lambda x: 1.0 / (1.0 + x))
