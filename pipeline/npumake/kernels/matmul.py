"""Exact integer matrix products on the float unit.

A float with a significand of t bits adds and multiplies integers exactly while no partial sum
exceeds 2**t, in any order that BLAS and its threads choose. For y = sum_k a_k * b_k

    |partial sum| <= max|a| * sum_k |b_k|

This bound selects float32 (t = 24), which is twice as fast, or float64 (t = 53). Both give the same
integers, many times faster than NumPy's integer arithmetic.
"""

from __future__ import annotations

import numpy as np

from npumake.kernels.arrays import Int64, Ints, TooWideError


def exact_float(a: Ints, b: Ints, axes: int | tuple[int, ...]) -> type[np.floating]:
    """The float type that is exact for products of `a` and `b` summed over `axes` of `b`.

    Raises TooWideError if a sum could exceed 2**53.
    """
    terms = int(np.prod([b.shape[axis] for axis in np.atleast_1d(axes)], dtype=np.int64))
    largest = _magnitude(a)
    if largest * _magnitude(b) * terms <= 1 << 24:  # a cheaper bound, enough for most layers
        return np.float32
    bound = largest * int(np.abs(b.astype(np.int64)).sum(axis=axes).max(initial=0))
    if bound <= 1 << 24:
        return np.float32
    if bound <= 1 << 53:
        return np.float64
    raise TooWideError(f"a sum of products could reach {bound}, beyond 2**53")


def _magnitude(values: Ints) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def matmul(a: Ints, b: Ints) -> Int64:
    """a @ b, exact, with the shapes and broadcasting of np.matmul.

    Raises TooWideError if a sum could exceed 2**53.
    """
    exact = exact_float(a, b, max(b.ndim - 2, 0))
    product: Int64 = np.asarray(a.astype(exact) @ b.astype(exact)).astype(np.int64)
    return product
