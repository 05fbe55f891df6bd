"""Where the rounded float64 product of an integer may be another code than the exact one.

A factor is M * 2**-s with 0 < M < 2**31, exact in float64. Its product with an integer a, and the
sum of this and one half, are each rounded by at most 2**-53 of themselves. Both codes, the exact
one and that in floats, are monotonic in a. So they differ only if some product lies so close to a
tie k + 1/2, but not on it. The products next to the tie lie, in units of 2**-s,

    (2 k + 1) * 2**(s - 1) mod M    below it, and M less this above it.

These are an arithmetic progression in k, modulo M. How many of its members are near 0 is a
difference of two sums of floors, each of O(log M) steps, as in Euclid's algorithm (R. L. Graham,
D. E. Knuth, O. Patashnik, Concrete Mathematics, section 3.5).
"""

from __future__ import annotations

import numpy as np

from npumake.kernels import rounding
from npumake.kernels.arrays import Int64
from npumake.kernels.rounding import Rounding

ERROR_BITS = 52  # product and sum together are wrong by at most 2**-52 of the largest
MAX_SHIFT = 62  # 2**s in int64
MAX_TIES = 1 << 16  # between the codes of 16 bits; sums over them fit int64


def are_countable(mantissa: Int64, shift: Int64, first: int, last: int) -> bool:
    """Whether int64 holds all that `count_near_ties` computes."""
    is_factor = mantissa.min() > 0 and shift.min() > 0 and shift.max() <= MAX_SHIFT
    return bool(is_factor) and last - first <= MAX_TIES


def count_near_ties(mantissa: Int64, shift: Int64, first: int, last: int) -> Int64:
    """By factor, the ties from `first` + 1/2 to `last` - 1/2 that some product comes near, and is
    not on. Factors and result are (n,); `are_countable` says which."""
    step, start = _progression(mantissa, shift, first)
    near = _near(mantissa, shift, first, last)

    def within(distance: Int64) -> Int64:
        raised, count = start + distance + mantissa, np.full_like(mantissa, last - first)
        whole = _floor_sums(count, mantissa, step, raised)
        return whole - _floor_sums(count, mantissa, step, raised - 2 * distance - 1)

    return within(near) - within(np.zeros_like(near))


def near_ties(mantissa: int, shift: int, first: int, last: int) -> Int64:
    """The k of those ties, of one factor."""
    m, s = np.array([mantissa]), np.array([shift])
    (step, start), near = _progression(m, s, first), _near(m, s, first, last)
    below = (step * np.arange(last - first) + start) % m
    return first + np.flatnonzero((below > 0) & (np.minimum(below, m - below) <= near))


def floats_agree(mantissa: int, shift: int, ties: Int64, rule: Rounding) -> bool:
    """Whether the products on both sides of each tie k + 1/2, none of them on it, are rounded to
    its sides."""
    below = np.array([((2 * k + 1) << (shift - 1)) // mantissa for k in ties.tolist()])
    sides = np.stack([below, below + 1]) * np.ldexp(float(mantissa), -shift)
    return np.array_equal(rounding.ROUNDED[rule](sides), np.stack([ties, ties + 1]))


def _progression(mantissa: Int64, shift: Int64, first: int) -> tuple[Int64, Int64]:
    """Step and start of (2 k + 1) * 2**(s - 1) modulo M, by k from `first`."""
    half = (1 << (shift - 1)) % mantissa
    return 2 * half % mantissa, (2 * first + 1) % mantissa * half % mantissa


def _near(mantissa: Int64, shift: Int64, first: int, last: int) -> Int64:
    """The largest error of a product in units of 2**-s; at most M / 2, where every tie is near."""
    largest = max(abs(first), abs(last)) + 1
    error = np.floor(np.ldexp(float(largest), shift - ERROR_BITS)).astype(np.int64)
    return np.minimum(error, (mantissa - 1) // 2)


def _floor_sums(n: Int64, m: Int64, a: Int64, b: Int64) -> Int64:
    """The sum of floor((a x + b) / m) over 0 <= x < n, elementwise; none is negative, m is not 0.

    What is left after whole parts counts the points below a line; with the axes exchanged these
    lie below another line, with m and a exchanged and fewer steps.
    """
    total = np.zeros_like(n)
    while n.any():
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        top = a % m * n + b % m
        m, a = np.where(top < m, 1, a % m), m
        n, b = np.divmod(top, a)
    return total
