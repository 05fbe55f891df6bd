"""The affine grid: x ~= scale * (q - zero_point), with low <= q <= high.

Scale and zero point are scalars, or arrays that broadcast against the values: `per_axis` lays a
one-dimensional array of channels along its axis.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Floats, Ints, NotANumberError
from npumake.kernels.rounding import ROUNDED, Rounding

Scalar = TypeVar("Scalar", bound=np.generic)


def per_axis(values: npt.NDArray[Scalar], rank: int, axis: int) -> npt.NDArray[Scalar]:
    """`values` of shape (C,) as (1, ..., C, ..., 1) with C at `axis`; shape () or (1,) becomes a
    scalar for all channels."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


def other_axes(rank: int, axis: int) -> tuple[int, ...]:
    """All axes but `axis`, which is not negative: a per-channel statistic reduces these."""
    return tuple(index for index in range(rank) if index != axis)


def quantize(
    x: Floats,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike,
    low: int,
    high: int,
    rounding: Rounding = "half_even",
) -> npt.NDArray[np.int32]:
    """saturate(round(x / scale) + zero_point). half_even is ONNX QuantizeLinear; half_away is the
    std::round of C++.

    Divides in the type of `x`, as ONNX does. Infinities saturate. Raises NotANumberError on NaN.
    """
    with np.errstate(over="ignore"):  # infinity saturates like any large value
        steps = ROUNDED[rounding](np.asarray(x / np.asarray(scale, x.dtype), np.float64))
    if np.isnan(steps).any():
        raise NotANumberError("NaN has no place on an integer grid")
    return np.clip(np.add(steps, zero_point), low, high).astype(np.int32)


def dequantize(q: Ints, scale: npt.ArrayLike, zero_point: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """scale * (q - zero_point) in float32: ONNX DequantizeLinear."""
    steps = np.subtract(q, zero_point, dtype=np.int32)
    real = steps.astype(np.float32) * np.asarray(scale, np.float32)
    return np.asarray(real)  # NumPy returns scalars instead of arrays of rank 0


def saturate(q: Ints, low: int, high: int) -> npt.NDArray[np.int32]:
    """`q` clipped to [low, high], as int32."""
    return np.clip(q, low, high).astype(np.int32)
