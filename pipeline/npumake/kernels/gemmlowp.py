"""Functions of TensorFlow Lite's reference kernels, in gemmlowp's fixed point.

A number with I integer bits is a = round(x * 2**(31 - I)). A product adds the integer bits of its
factors and rounds with `high_product`. With -1/4 <= a < 0, b the remaining bits and x = a + 1/8,

    exp(a - b) = exp(-1/8) * (1 + x + x**2/2 + x**3/6 + x**4/24) * product of exp(-2**k) of b

    1 / (1 + a)   three steps of Newton's method from 48/17 - 32/17 * d, with d = (1 + a) / 2

Source: gemmlowp/fixedpoint.h, tensorflow/lite/kernels/internal/reference/softmax.h.
"""

from __future__ import annotations

import numpy as np

from npumake.kernels.arrays import Int64, Ints
from npumake.kernels.rounding import FixedPoint, fixed_point, high_product, rescale, shift_right

UNIT = np.int64((1 << 31) - 1)  # without integer bits
EXP_EIGHTH = np.int64(1895147668)  # exp(-1/8)
THIRD = np.int64(715827883)  # 1/3
POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2**k), k > -3
DIFF_BITS = 5  # integer bits of a scaled difference
LINEAR_BITS = 10  # of a weight between two inputs
SUM_BITS = 12  # integer bits of a sum of exponentials
_INT32 = np.iinfo(np.int32)


def exp(a: Int64) -> Int64:
    """exp(a) without integer bits, for a <= 0 with DIFF_BITS."""
    quarter = np.int64(1 << (31 - DIFF_BITS - 2))
    near = (a & (quarter - 1)) - quarter
    x = (near << DIFF_BITS) + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    third = high_product(_halved(x4, 2) + x3, THIRD)
    result = EXP_EIGHTH + high_product(x + _halved(third + x2, 1), EXP_EIGHTH)
    left = near - a
    for place, power in enumerate(POWERS):
        bit = np.int64(1 << (31 - DIFF_BITS - 2 + place))
        result = np.where(left & bit, high_product(result, np.int64(power)), result)
    return np.where(a == 0, UNIT, result)


def reciprocal(a: Int64) -> Int64:
    """1 / (1 + a) for 0 <= a < 1, both without integer bits."""
    half = (a + UNIT + 1) // 2  # rounded; both are positive
    x = np.int64(1515870810) + high_product(half, np.int64(-1010580540))  # 48/17 - 32/17 d
    for _ in range(3):
        rest = (1 << 29) - high_product(half, x)
        x = _saturated(x + _saturated(high_product(x, rest) << 2))
    return _saturated(x << 1)


def softmax(q: Ints, scale: float, axis: int) -> Int64:
    """int8 codes on the grid 1/256, -128, along `axis`, for codes `q` of this scale."""
    factor = fixed_point(min(scale * 2.0 ** (31 - DIFF_BITS), 2.0**31 - 1))
    left = 31 - int(factor.shift)
    diff = q.astype(np.int64) - q.max(axis=axis, keepdims=True)
    radius = ((1 << DIFF_BITS) - 1) * (1 << (31 - DIFF_BITS)) // (1 << max(left, 0))
    counts = diff >= -radius
    powers = exp(rescale(np.where(counts, diff, 0), factor, "twice"))
    total = np.where(counts, _halved(powers, SUM_BITS), 0).sum(axis=axis, keepdims=True)
    headroom = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    inverse = reciprocal((total << headroom) - (np.int64(1) << 31))
    quotients = high_product(inverse, powers)
    codes = shift_right(quotients, SUM_BITS - headroom + 31 - 8, "half_away") - 128
    return np.where(counts, np.clip(codes, -128, 127), -128)


def mean_factor(ratio: float, count: int) -> FixedPoint:
    """ratio / count: the mantissa divided and truncated."""
    whole = fixed_point(ratio)
    shift = min(count.bit_length() - 1, 32, 62 - int(whole.shift))
    mantissa = (int(whole.mantissa) << shift) // count
    return FixedPoint(np.asarray(mantissa, np.int64), whole.shift + shift)


def hard_swish(steps: Int64, scale: float, output: float) -> Int64:
    """Steps of scale `output` for steps of `scale`: 16-bit fixed point, without zero point."""
    high = np.float32(1 / 128) * np.float32(scale)
    gain, gain_shift = _short(float(high / np.float32(output)))
    relu, relu_shift = _short(float(high / np.float32(3 / 32768)))
    wide = steps << 7
    gate = _short_limits(wide << max(relu_shift - 1, 0))
    gate = _short_product(gate, relu)
    gate = _short_limits(gate << 1) if relu_shift > 0 else _halved(gate, -relu_shift)
    share = (gate + (1 << 15)) >> 1
    product = share * _short_product(wide, gain)
    cut = np.sign(product) * (np.abs(product) >> 15)  # towards zero
    return _halved(cut, -gain_shift)


def linear_taps(n: int, m: int, coordinates: str) -> tuple[Int64, Int64, Int64]:
    """For each of m outputs the two inputs, and the weight of the upper one in units of
    2**-10."""
    aligned = coordinates == "align_corners" and m > 1
    shift = 1 if aligned else 0
    scale = ((n - shift << LINEAR_BITS) + (m - shift) // 2) // (m - shift)
    offset = scale // 2 - (1 << (LINEAR_BITS - 1)) if coordinates.endswith("half_pixel") else 0
    x = np.arange(m, dtype=np.int64) * scale + offset
    low = np.maximum(x, 0) >> LINEAR_BITS
    high = np.minimum((np.maximum(x, 0) + (1 << LINEAR_BITS) - 1) >> LINEAR_BITS, n - 1)
    return low, high, x - (low << LINEAR_BITS)


def linear(q: Ints, rows: tuple[Int64, ...], columns: tuple[Int64, ...]) -> Int64:
    """q (N, C, H, W) interpolated between its neighbors, half away from zero."""
    total = q.astype(np.int64)
    for axis, (low, high, weight) in ((2, rows), (3, columns)):
        weights = weight.reshape(-1, *(1,) * (3 - axis))
        below, above = total.take(low, axis), total.take(high, axis)
        total = below * ((1 << LINEAR_BITS) - weights) + above * weights
    return _halved(total, 2 * LINEAR_BITS)


def leaky_relu(steps: Int64, ratio: float, below: float) -> Int64:
    """steps * ratio, or steps * below where negative, each rounded twice."""
    above, under = (rescale(steps, fixed_point(real), "twice") for real in (ratio, below))
    return np.where(steps >= 0, above, under)


def _short(factor: float) -> tuple[int, int]:
    """A 15-bit mantissa and its exponent."""
    fixed = fixed_point(factor)
    return min((int(fixed.mantissa) + (1 << 15)) >> 16, (1 << 15) - 1), 31 - int(fixed.shift)


def _short_product(a: Int64, b: int) -> Int64:
    return _short_limits((a * b + (1 << 14)) >> 15)


def _short_limits(a: Int64) -> Int64:
    return np.clip(a, -(1 << 15), (1 << 15) - 1)


def _halved(a: Int64, times: int) -> Int64:
    return shift_right(a, np.asarray(times, np.int64), "half_away")


def _saturated(a: Int64) -> Int64:
    return np.clip(a, _INT32.min, _INT32.max)
