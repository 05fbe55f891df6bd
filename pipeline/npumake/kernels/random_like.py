"""Random values with the distribution of an array.

    zeros     as many as in the array, at random places
    others    drawn from the piecewise linear distribution through KNOTS quantiles, then moved and
              scaled until mean and deviation match those of the array

Shape, type, minimum, maximum and the share of zeros stay. Mean and standard deviation stay within
MEAN_TOLERANCE and DEVIATION_TOLERANCE of the deviation, for MIN_MATCHED_VALUES or more floats. Two
values, or equal values, only change their order.
"""

from __future__ import annotations

import numpy as np

KNOTS = 64
VALUES_PER_KNOT = 4  # so that few values are not copied
ROUNDS = 32
MIN_MATCHED_VALUES = 16
MEAN_TOLERANCE, DEVIATION_TOLERANCE = 0.01, 0.02


def random_like(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values that are not finite are moved to random places."""
    flat = values.reshape(-1)
    wide = flat.astype(np.float64)
    sampled = flat.copy()
    varied = np.isfinite(wide) & (wide != 0)
    sampled[varied] = _sampled(wide[varied], flat.dtype, rng)
    return rng.permutation(sampled).reshape(values.shape)


def _sampled(values: np.ndarray, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """As many values, none of them 0."""
    if values.size <= 2 or values.min() == values.max():
        return values.astype(dtype)
    ends = np.array([values.min(), values.max()])
    unit = np.abs(ends).max()  # squares of the largest numbers would overflow
    inner = _inner(values / unit, ends / unit, rng) * unit
    return _typed(np.concatenate([ends, np.clip(inner, *ends)]), values, dtype)


def _inner(values: np.ndarray, ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The values between the two `ends`, with the mean and deviation that they leave."""
    count = values.size - 2
    shares = np.linspace(0, 1, min(KNOTS, values.size // VALUES_PER_KNOT + 2))
    inner = np.interp(rng.random(count), shares, np.quantile(values, shares))
    mean = (values.sum() - ends.sum()) / count
    power = (np.square(values).sum() - np.square(ends).sum()) / count
    deviation = np.sqrt(max(power - mean * mean, 0.0))
    for _ in range(ROUNDS):
        spread = inner.std()
        scale = deviation / spread if spread > 0 else 1.0
        inner = np.clip((inner - inner.mean()) * scale + mean, *ends)
    return inner


def _typed(sampled: np.ndarray, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """In the type of the array. What rounds to 0 gets the least magnitude of its sign."""
    rounded = (np.rint(sampled) if dtype.kind in "iu" else sampled).astype(dtype)
    zero = rounded == 0
    smallest = np.abs(values).min()
    negative = (sampled[zero] < 0) | (values.max() < 0)
    rounded[zero] = np.where(negative, -smallest, smallest).astype(dtype)
    return np.clip(rounded, *(values.min().astype(dtype), values.max().astype(dtype)))
