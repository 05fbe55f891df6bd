"""Grids: scale and zero point of a tensor. real = scale * (code - zero_point).

    symmetric    T = max(|low|, |high|)      scale = T / max code          zero point 0 (128)
    asymmetric   low <= 0 <= high            scale = (high - low) / 255    zero point = code of 0
    halfway      0 between two codes there   scale = max(high / (255 - n), -low / n)

Zero is always exactly a code: padding and ReLU depend on it. Values of a lattice of 256, such as
pixels, then all shift by the distance of zero to its code. Halfway between two codes, as for pixels
fed as p / 127.5 - 1, neighbors round apart: half of the codes stay empty and every pixel has the
largest error. The halfway grid, with n codes below zero, reaches both ends, so values fall anywhere
between its codes.

A tensor that is always zero, without a non-zero neighbor (calibration.empty_ranges), gets scale 1.
Scales are float32, as ONNX stores them; a power of two is rounded up. int16 is symmetric:

    made as int16        scale = T / 32767
    int8 read as int16   scale = scale of the int8 / 128       q16 = 128 * (q8 - zero point), exact
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.graph.qdq import Grid
from npumake.kernels.affine import dequantize, other_axes, per_axis, quantize
from npumake.targets.target import Activations, WeightGrid

MIN_RANGE = 2.0**-100  # smaller ranges are zero: their scale is not a normal float32
# Nearer than this to the middle of two codes, float32 rounds to either.
HALFWAY_STEPS = 0.001
# The scale of an all-zero channel over the largest scale: keeps factors small.
MAX_DEAD_SCALE_RATIO = 2.0**20
MAX_BIAS = 2**30  # half of int32 is left to the accumulator
MAX_WIDE_BIAS = 2**44  # with int16 weights: requantized values have 46 bits


class Grids(NamedTuple):
    """The 8-bit grid of an observed tensor, and its int16 grid."""

    narrow: Grid
    wide: Grid


def on_grid(values: np.ndarray, grid: Grid, axis: int | None = None) -> np.ndarray:
    """The quantized and dequantized values, float32; per channel along `axis`, if any. Raises
    ValueError on NaN."""
    scale, zero_point = grid
    if axis is not None:
        scale, zero_point = (per_axis(parameter, values.ndim, axis) for parameter in grid)
    limits = np.iinfo(zero_point.dtype)
    codes = quantize(values, scale, zero_point, limits.min, limits.max)
    return dequantize(codes, scale, zero_point)


def activation_grid(low: float, high: float, scheme: Activations) -> Grid:
    """The per-tensor grid for values in [low, high]."""
    dtype = np.dtype(scheme.dtype)
    limits = np.iinfo(dtype)
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < MIN_RANGE:
        return grid(1.0, _middle(dtype), dtype)
    if scheme.symmetric:
        scale = max(-low, high) / limits.max * _halves(dtype)
        return grid(power_of_two(scale) if scheme.power_of_two else scale, _middle(dtype), dtype)
    codes = limits.max - limits.min
    step = np.float32((high - low) / codes)
    below = -low / float(step)
    if abs(below % 1.0 - 0.5) < HALFWAY_STEPS:
        return _reaching(low, high, math.ceil(below), dtype)
    zero_point = round(limits.min + below)
    return grid(float(step), min(max(zero_point, limits.min), limits.max), dtype)


def _reaching(low: float, high: float, below: int, dtype: np.dtype) -> Grid:
    """The grid with `below` codes below zero and the least scale that reaches both ends."""
    limits = np.iinfo(dtype)
    above = limits.max - limits.min - below
    return grid(max(-low / below, high / above if above else 0.0), limits.min + below, dtype)


def image_grid(scheme: Activations) -> Grid:
    """The exact grid of an 8-bit image fed as value - 128: every pixel is a code."""
    dtype = np.dtype(scheme.dtype)
    return grid(1.0, _middle(dtype), dtype)


def exact_int16_grid(narrow: Grid) -> Grid:
    """The int16 grid that holds every code of an 8-bit grid exactly: 128 steps for each."""
    return grid(float(narrow.scale) / 128, 0, np.dtype(np.int16))


def weight_grid(weight: np.ndarray, axis: int, scheme: WeightGrid, smallest: np.ndarray) -> Grid:
    """The grid of a weight, per channel along `axis` if the scheme is per channel.

    `smallest` is a lower bound of each channel's scale, (channels,): below it the bias, whose scale
    is this one times the input's, would overflow. An asymmetric grid covers the whole tensor: scale
    = (max - min) / 255 and zero point = rint(-min / scale) of uint8.
    """
    dtype = np.dtype(scheme.dtype)
    if scheme.asymmetric:
        return _asymmetric_weights(weight, weight.shape[axis], dtype, smallest)
    largest = np.abs(weight.astype(np.float64)).max(axis=other_axes(weight.ndim, axis))
    scale = np.maximum(largest / np.iinfo(dtype).max, smallest)
    if not scheme.per_channel:
        scale = np.full_like(scale, scale.max())
    dead = min(1.0, MAX_DEAD_SCALE_RATIO * float(scale.max(initial=0.0))) or 1.0
    scale = np.where(scale < MIN_RANGE, dead, scale)
    if scheme.power_of_two:
        scale = power_of_two(scale)
    return Grid(scale.astype(np.float32), np.zeros(scale.shape, dtype))


def _asymmetric_weights(
    weight: np.ndarray, channels: int, dtype: np.dtype, smallest: np.ndarray
) -> Grid:
    """One grid for all channels, with zero among its codes."""
    limits = np.iinfo(dtype)
    low, high = min(float(weight.min(initial=0.0)), 0.0), max(float(weight.max(initial=0.0)), 0.0)
    scale = max((high - low) / (limits.max - limits.min), float(smallest.max(initial=0.0)))
    scale = scale if scale >= MIN_RANGE else 1.0
    zero_point = np.rint(limits.min - low / scale).astype(dtype)
    shape = (channels,)
    return Grid(np.full(shape, scale, np.float32), np.full(shape, zero_point, dtype))


def constant_grid(values: np.ndarray, scheme: Activations) -> Grid:
    """The grid of a constant only from its values."""
    return activation_grid(float(values.min()), float(values.max()), scheme)


def grid(scale: float, zero_point: int, dtype: np.dtype) -> Grid:
    return Grid(np.array(scale, np.float32), np.array(zero_point, dtype))


def power_of_two(scale: npt.ArrayLike) -> Any:
    """The smallest power of two that is not below `scale`."""
    fraction, exponent = np.frexp(np.asarray(scale, np.float64))
    return np.ldexp(1.0, exponent - (fraction == 0.5))


def _middle(dtype: np.dtype) -> int:
    return 0 if dtype.kind == "i" else 1 << (dtype.itemsize * 8 - 1)


def _halves(dtype: np.dtype) -> int:
    """The divisor of an unsigned symmetric grid, with half of its codes on either side: 255 / 2 is
    127.5."""
    return 1 if dtype.kind == "i" else 2
