"""Similarity of two tensors, the reference a and the other b, with e = a - b:

    cosine     sum a*b / sqrt(sum a*a * sum b*b)     1 for two zero tensors, 0 for one,
                                                     NaN for NaN or infinity
    mse        sum e*e / count                       sqnr_db    10 * log10(sum a*a / sum e*e)
    l1         sum |e|                               l2         sqrt(sum e*e)
    mre        sum |e| / sum |a|                     chebyshev  max |e|

The mean relative error relates total magnitudes: per element it is meaningless where a is zero, as
behind a Relu.

All come from seven float64 sums, which add up over batches. They are computed in blocks so short
that BLAS uses one thread for a dot product; so the number of threads changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.number[Any]]

BLOCK = 1 << 13  # elements; OpenBLAS splits a dot product of more than 10,000


@dataclass(frozen=True)
class Alignment:
    """The three sums of a cosine; `+` merges two."""

    ab: float = 0.0
    aa: float = 0.0
    bb: float = 0.0

    def __add__(self, other: Alignment) -> Alignment:
        return Alignment(self.ab + other.ab, self.aa + other.aa, self.bb + other.bb)

    @property
    def cosine(self) -> float:
        if self.aa == 0.0 or self.bb == 0.0:
            return float(self.aa == self.bb)
        product = self.aa * self.bb
        inside = 0.0 < product < math.inf  # within float64's range
        norm = math.sqrt(product) if inside else math.sqrt(self.aa) * math.sqrt(self.bb)
        ratio = self.ab / norm
        return ratio if math.isnan(ratio) else max(-1.0, min(1.0, ratio))


@dataclass(frozen=True)
class Agreement:
    """The sums of one or many pairs of tensors; `+` merges two."""

    ab: float = 0.0
    aa: float = 0.0
    bb: float = 0.0
    squared: float = 0.0
    absolute: float = 0.0
    chebyshev: float = 0.0
    magnitude: float = 0.0  # sum |a|
    count: int = 0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.ab + other.ab,
            self.aa + other.aa,
            self.bb + other.bb,
            self.squared + other.squared,
            self.absolute + other.absolute,
            float(np.maximum(self.chebyshev, other.chebyshev)),  # propagates NaN
            self.magnitude + other.magnitude,
            self.count + other.count,
        )

    @property
    def cosine(self) -> float:
        return Alignment(self.ab, self.aa, self.bb).cosine

    @property
    def mse(self) -> float:
        return self.squared / self.count if self.count else 0.0

    @property
    def mre(self) -> float:
        """Infinite for an error without a signal."""
        if self.absolute == 0.0:
            return 0.0
        return self.absolute / self.magnitude if self.magnitude else math.inf

    @property
    def sqnr_db(self) -> float:
        """In decibels: infinite without an error, minus infinite without a signal or if it vanishes
        beside the error."""
        if self.squared == 0.0:
            return math.inf
        ratio = self.aa / self.squared
        return 10.0 * math.log10(ratio) if ratio else -math.inf

    @property
    def l1(self) -> float:
        return self.absolute

    @property
    def l2(self) -> float:
        return math.sqrt(self.squared)


def worst(figures: Iterable[float], default: float = 1.0) -> float:
    """The minimum, NaN if any is NaN; `min` misses some."""
    values = list(figures)
    return math.nan if any(map(math.isnan, values)) else min(values, default=default)


def agreement(a: Numbers, b: Numbers) -> Agreement:
    """The sums of one pair; `a` is the reference. Raises ValueError if the shapes differ."""
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {a.shape} and {b.shape}")
    (sums,) = agreements(a, (b,))
    return sums


def agreements(a: Numbers, others: Sequence[Numbers]) -> list[Agreement]:
    """The sums of the reference `a` with each of `others`, which have its shape; sums of `a` alone
    are computed once."""
    flat, parts = np.ravel(a), [np.ravel(other) for other in others]
    x, y = np.empty((2, min(BLOCK, flat.size)))
    aa = magnitude = 0.0
    sums = [(0.0, 0.0, 0.0, 0.0, 0.0) for _ in parts]
    for start in range(0, flat.size, BLOCK):
        block = slice(start, min(start + BLOCK, flat.size))
        u, v = x[: block.stop - start], y[: block.stop - start]
        u[...] = flat[block]
        aa += _dot(u, u)
        for index, part in enumerate(parts):
            v[...] = part[block]
            ab, bb, squared, absolute, largest = sums[index]
            ab, bb = ab + _dot(u, v), bb + _dot(v, v)
            error = np.abs(np.subtract(u, v, out=v), out=v)
            squared, absolute = squared + _dot(error, error), absolute + _sum(error)
            largest = float(np.maximum(largest, np.maximum.reduce(error)))  # propagates NaN
            sums[index] = ab, bb, squared, absolute, largest
        magnitude += _sum(np.abs(u, out=u))
    return [
        Agreement(ab, aa, bb, squared, absolute, largest, magnitude, flat.size)
        for ab, bb, squared, absolute, largest in sums
    ]


def alignments(a: Numbers, others: Sequence[Numbers]) -> list[Alignment]:
    """The sums of the reference `a` with each of `others`, which have its shape."""
    flat, parts = np.ravel(a), [np.ravel(other) for other in others]
    aa, sums = 0.0, [[0.0, 0.0] for _ in parts]
    for start in range(0, flat.size, BLOCK):
        block = slice(start, start + BLOCK)
        x = flat[block].astype(np.float64)
        aa += _dot(x, x)
        for total, part in zip(sums, parts, strict=True):
            y = part[block].astype(np.float64)
            total[0] += _dot(x, y)
            total[1] += _dot(y, y)
    return [Alignment(ab, aa, bb) for ab, bb in sums]


def _dot(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(np.dot(a, b))


def _sum(a: npt.NDArray[np.float64]) -> float:
    return float(np.add.reduce(a))  # starts faster than np.sum


def cosine(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).cosine


def mse(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).mse


def sqnr_db(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).sqnr_db


def chebyshev(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).chebyshev


def l1(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).l1


def l2(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).l2


def mre(a: Numbers, b: Numbers) -> float:
    return agreement(a, b).mre
