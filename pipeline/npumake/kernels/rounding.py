"""Requantization: an exact integer accumulator times a real factor, in integers, as in hardware.

A factor m is M * 2**-s with |M| < 2**31, correctly rounded, so that

    rescale(a, m) = round(a * M * 2**-s)

needs one multiplication, one shift and a rule for ties. With q = floor(p * 2**-s) and the remainder
r = p - q * 2**s, the three rules differ only where r is exactly half of 2**s:

    half_even  to the even neighbor      0.5 -> 0   1.5 -> 2   -0.5 ->  0
    half_up    towards plus infinity      0.5 -> 1   1.5 -> 2   -0.5 ->  0
    half_away  away from zero             0.5 -> 1   1.5 -> 2   -0.5 -> -1

The fourth, `twice`, is that of TensorFlow Lite and gemmlowp: a multiplication that keeps the high
half, then a shift, each rounded. round(a * M * 2**-31) is half_up, round(result * 2**(31 - s))
half_away; for s < 31, a is shifted left first.

A sum of rescaled terms is rounded once: use one shift for all factors, add the products, shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64, TooWideError

Rounding: TypeAlias = Literal["half_even", "half_up", "half_away", "twice"]
Whole: TypeAlias = npt.NDArray[Any]  # integers, in an integer or float type that holds them
Real: TypeAlias = npt.NDArray[np.float64]

MANTISSA_BITS = 31
LIMB_BITS = 16  # a wide accumulator is multiplied as high * 2**16 + low
BLOCK = 1 << 15  # elements whose intermediate products stay in the cache
EXACT_BITS = 52
MAX_ERROR = 2.0**-20  # of a float64 product that is rounded where no half is near
EXACT = 1 << EXACT_BITS  # float64 adds one half exactly to any smaller product
_MAX_INT64 = np.int64(np.iinfo(np.int64).max)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """mantissa * 2**-shift, elementwise; |mantissa| < 2**31. The shapes broadcast."""

    mantissa: Int64
    shift: Int64


def fixed_point(factor: npt.ArrayLike) -> FixedPoint:
    """Each factor with a 31-bit mantissa, rounded half to even; zero is 0 * 2**-31.

    Raises ValueError if a factor is not finite.
    """
    values = np.asarray(factor, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a factor must be finite")
    fraction, exponent = np.frexp(values)  # 1/2 <= |fraction| < 1, or 0
    mantissa = np.rint(np.ldexp(fraction, MANTISSA_BITS)).astype(np.int64)
    carry = np.abs(mantissa) >> MANTISSA_BITS  # 1 if rounding reached 2**31
    return FixedPoint(mantissa >> carry, MANTISSA_BITS - exponent - carry)


def fixed_point_common(factors: npt.ArrayLike) -> FixedPoint:
    """All factors with one shift, which gives the largest a 31-bit mantissa.

    The shift is an array of shape (). The error is at most 2**-31 of the largest factor. Raises
    ValueError if a factor is not finite.
    """
    largest = np.max(np.abs(np.asarray(factors, np.float64)), initial=0.0)
    shift = fixed_point(largest).shift
    mantissa = np.rint(np.ldexp(np.asarray(factors, np.float64), shift))
    return FixedPoint(mantissa.astype(np.int64), shift)


def rescale(accumulator: Whole, factor: FixedPoint, rule: Rounding) -> Whole:
    """round(accumulator * mantissa * 2**-shift), exact for |accumulator| < 2**46.

    Accumulator and result hold integers in any numeric type: the result is float64 if exact, else
    int64. A per-channel factor broadcasts, and a result beyond int64 saturates. Raises TooWideError
    for an accumulator of 2**46, or of 2**31 times a factor above 2**13.
    """
    if rule == "twice":
        return rescale_twice(accumulator.astype(np.int64), factor)
    largest = max(int(accumulator.max(initial=0)), -int(accumulator.min(initial=0)))
    if largest < EXACT >> MANTISSA_BITS and _is_within(factor.shift, 0, EXACT_BITS):
        real = np.ldexp(factor.mantissa.astype(np.float64), -factor.shift)
        return ROUNDED[rule](np.asarray(np.multiply(accumulator, real, dtype=np.float64)))
    certain = _certain(accumulator, factor, largest) if largest < 1 << 46 else None
    if certain is not None:
        return certain
    a = accumulator.astype(np.int64, copy=False)
    if largest < 1 << 31:
        return shift_right(a * factor.mantissa, factor.shift, rule)
    # Keep two bits of the shift below the limb: the half, and a sticky bit for all lower ones.
    if largest >= 1 << 46 or np.min(factor.shift) < LIMB_BITS + 1:
        raise TooWideError(f"an accumulator of {largest} is too wide for this factor")
    low = (a & ((1 << LIMB_BITS) - 1)) * factor.mantissa
    top = (a >> LIMB_BITS) * factor.mantissa + (low >> LIMB_BITS)
    sticky = (low & ((1 << LIMB_BITS) - 1)) != 0
    return shift_right(2 * top + sticky, factor.shift - (LIMB_BITS - 1), rule)


def _certain(accumulator: Whole, factor: FixedPoint, largest: int) -> Real | None:
    """The rounded product in float64, with an error e of at most 2**-53 of it; None where one lies
    within e of a half, where the last bits and the rule decide."""
    real = np.ldexp(factor.mantissa.astype(np.float64), -factor.shift)
    error = float(np.max(np.abs(real), initial=0.0)) * largest / EXACT
    if not error <= MAX_ERROR:  # NaN neither
        return None
    product = np.asarray(np.multiply(accumulator, real, dtype=np.float64))
    nearest = np.rint(product)
    product -= nearest
    farthest = max(float(product.max(initial=0.0)), -float(product.min(initial=0.0)))
    return nearest if farthest < 0.5 - 2 * error else None


def shortened(factor: FixedPoint) -> FixedPoint:
    """With 15-bit mantissas, as TensorFlow Lite uses for 64-bit accumulators."""
    mantissa = np.minimum((factor.mantissa + (1 << (LIMB_BITS - 1))) >> LIMB_BITS, 0x7FFF)
    return FixedPoint(mantissa, factor.shift - LIMB_BITS)


def rescale_twice(accumulator: Int64, factor: FixedPoint) -> Int64:
    """MultiplyByQuantizedMultiplier of TensorFlow Lite, for |accumulator| * 2**left < 2**31."""
    left = np.maximum(MANTISSA_BITS - factor.shift, 0)
    high = high_product(accumulator << left, factor.mantissa)
    return shift_right(high, factor.shift - MANTISSA_BITS + left, "half_away")


def high_product(a: Int64, b: Int64 | np.int64) -> Int64:
    """round(a * b * 2**-31), ties up: gemmlowp's SaturatingRoundingDoublingHighMul."""
    return (a * b + (1 << (MANTISSA_BITS - 1))) >> MANTISSA_BITS


def _is_within(values: Int64, low: int, high: int) -> bool:
    return bool(np.min(values, initial=low) >= low and np.max(values, initial=low) <= high)


def _half_up(x: Real) -> Real:
    return np.floor(np.add(x, 0.5, out=x), out=x)


def _half_away(x: Real) -> Real:
    return np.trunc(np.add(x, np.copysign(0.5, x), out=x), out=x)


# Rounds p * 2**-s in place for |p| < 2**52 and s <= 52: one half is then a multiple of 2**-s too,
# and the sum fits float64's 53 bits.
ROUNDED: dict[Rounding, Callable[[Real], Real]] = {
    "half_even": lambda x: np.rint(x, out=x),
    "half_up": _half_up,
    "half_away": _half_away,
}


def blocks(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Slices of an array along its first axis longer than 1, small enough for the cache."""
    if prod(shape) <= BLOCK:
        yield ()
        return
    axis = next(axis for axis, size in enumerate(shape) if size > 1)
    step = max(1, BLOCK * shape[axis] // prod(shape))
    for start in range(0, shape[axis], step):
        yield (*(slice(None),) * axis, slice(start, start + step))


def part_of(values: Whole, part: Sequence[slice], rank: int) -> Whole:
    """The part of `values`, which broadcast to `rank` axes, that belongs to the slice
    `part`."""
    whole = values.reshape((1,) * (rank - values.ndim) + values.shape)
    cut = (at if size > 1 else slice(None) for at, size in zip(part, whole.shape, strict=False))
    return whole[tuple(cut)]


def shift_right(product: Int64, shift: Int64, rule: Rounding) -> Int64:
    """round(product * 2**-shift) for any shift; a negative one shifts left and saturates.

    `product` is any int64 except -2**63. The shapes broadcast.
    """
    if np.min(shift, initial=0) < 0:
        left = np.clip(-shift, 0, 62)
        limit = _MAX_INT64 >> left
        product = np.clip(product, -limit, limit) << left
    if np.max(shift, initial=0) > 63:
        product = np.where(shift > 63, 0, product)  # less than half a unit
    shift = np.clip(shift, 0, 63)
    floor = product >> shift
    remainder = product & ~(np.int64(-1) << shift)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    return floor + (remainder > half - tie_goes_up(rule, product, floor))


def tie_goes_up(rule: Rounding, product: Int64, floor: Int64) -> Int64 | int:
    if rule == "half_up":
        return 1
    if rule == "half_away":
        return (product >= 0).astype(np.int64)
    return floor & 1
