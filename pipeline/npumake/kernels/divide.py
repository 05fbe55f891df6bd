"""Integer division with one rounding, and the normalization of a row.

A quotient a / b includes a factor m = M * 2**-s, so that nothing is rounded in between:

    round(a / b * m) = round(p / d)      p = a * M      d = b * 2**s

A row of N integers a with the sum S has, with d = N * a - S, the squared deviations

    D = N * sum a*a - S*S = N**2 * var      (a - mean) / sqrt(var + eps) = d / sqrt(D + N**2 * eps)

The root is taken of D + N**2 * eps shifted up to 62 bits, so it has 31 bits.
"""

from __future__ import annotations

import numpy as np

from npumake.kernels.arrays import Int64, Ints
from npumake.kernels.rounding import FixedPoint, Rounding, tie_goes_up

NORM_BITS = 20
MAX_ROW_ELEMENTS = 1 << 14  # elements of a row: results stay within int64 for 16-bit codes
MAX_EPSILON = 1 << 61
SATURATING_QUOTIENT = 1 << 40  # saturates on every grid
_MAX_WIDE = np.int64(1 << 62)


def divide(a: Ints, b: Ints, factor: FixedPoint, rule: Rounding) -> Int64:
    """round(a / b * factor) for |a|, |b| < 2**17 and a scalar factor; the shapes broadcast.

    A non-zero number divided by 0 is beyond every grid, with its sign; 0 / 0 is 0.
    """
    sign = np.where(b < 0, np.int64(-1), np.int64(1))
    p = a.astype(np.int64) * factor.mantissa * sign
    d = np.abs(b.astype(np.int64))
    shift = int(factor.shift)
    up, down = min(max(shift, 0), 62), min(max(-shift, 0), 14)
    p, whole = p << down, np.minimum(d, _MAX_WIDE >> up) << up  # beyond: a result below a half
    quotient = _rounded(p, np.maximum(whole, 1), rule)
    return np.where(d == 0, np.sign(p) * SATURATING_QUOTIENT, quotient)


def _rounded(p: Int64, d: Int64, rule: Rounding) -> Int64:
    """round(p / d) for 0 < d <= 2**62."""
    floor = p // d
    return floor + (2 * (p - floor * d) > d - tie_goes_up(rule, p, floor))


def normalized(a: Ints, axes: tuple[int, ...], epsilon: Int64) -> Int64:
    """(a - mean) / sqrt(var + eps) over `axes`, in units of 2**-20, for `epsilon` = N**2 * eps.

    |a| < 2**16, and at most MAX_ROW_ELEMENTS in a row. Within 2**-20 of the exact quotient.
    """
    x = a.astype(np.int64)
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64)
    total = x.sum(axis=axes, keepdims=True)
    squares = count * (x * x).sum(axis=axes, keepdims=True) - total * total
    under = np.maximum(squares + epsilon, 1)  # a row of one value is 0 for any divisor
    _, bits = np.frexp(under.astype(np.float64))
    shift = ((62 - bits) // 2).astype(np.int64)
    root = isqrt(under << 2 * shift)
    return (((count * x - total) << shift + NORM_BITS) + root // 2) // root


def isqrt(values: Int64) -> Int64:
    """floor(sqrt(v)) for 0 <= v < 2**62: float64's root, corrected by at most one."""
    root = np.sqrt(values.astype(np.float64)).astype(np.int64)
    root -= root * root > values
    root += (root + 1) * (root + 1) <= values
    return root
