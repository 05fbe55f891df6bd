"""Resizing by nearest and by linear interpolation, one axis at a time.

An output index i stands at the input coordinate (ONNX Resize, coordinate_transformation_mode)

    half_pixel            (i + 1/2) / scale - 1/2
    pytorch_half_pixel    the same, but 0 where the output has one element
    align_corners         i * (in - 1) / (out - 1), and 0 where the output has one element
    asymmetric            i / scale

in float32 and in this order, as onnxruntime computes it: a coordinate that is a hair off an
integer there must be off here too. From then on all is integers: a linear weight is in units
of 2**-22, fine enough for 16 bits. Of the sum over r axes, in units of 2**-(22 * r), 14 * r bits
are kept, the last one set where any that is dropped was: no tie is made or broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.kernels.arrays import Int64, Ints

Coordinates: TypeAlias = Literal["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
Nearest: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

WEIGHT_BITS = 22  # two axes of them and a 16-bit value stay within int64
KEPT_BITS = 14  # two axes of them and a 16-bit value stay within what `rescale` takes


class Taps(NamedTuple):
    """Output i is x[low[i]] * (2**22 - weight[i]) + x[high[i]] * weight[i]; each is (out,)."""

    low: Int64
    high: Int64
    weight: Int64


class Interpolated(NamedTuple):
    """values * 2**-bits, exact."""

    values: Int64
    bits: int


def nearest(x: Ints, indices: Sequence[Int64]) -> Ints:
    """x (..., *spatial) read at `indices`, one array of shape (out,) per last axis of x."""
    for axis, index in enumerate(indices, x.ndim - len(indices)):
        x = np.take(x, index, axis=axis)
    return x


def linear(x: Ints, taps: Sequence[Taps]) -> Interpolated:
    """x (..., *spatial) interpolated along its last one or two axes, a `Taps` for each."""
    total = x.astype(np.int64)
    for axis, (low, high, weight) in enumerate(taps, x.ndim - len(taps)):
        weights = weight.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        below, above = total.take(low, axis), total.take(high, axis)
        total = (below << WEIGHT_BITS) + (above - below) * weights
    dropped = (WEIGHT_BITS - KEPT_BITS) * len(taps)
    sticky = (total & ((1 << dropped) - 1)) != 0
    return Interpolated((total >> dropped) | sticky, KEPT_BITS * len(taps))


def nearest_indices(
    in_size: int, out_size: int, scale: float, coordinates: Coordinates, rule: Nearest
) -> Int64:
    """The input index of each output index along one axis, of shape (out_size,)."""
    x = _coordinates(in_size, out_size, scale, coordinates)
    floor = np.floor(x)
    fraction = x - floor
    up = {
        "floor": fraction > 1,
        "ceil": fraction > 0,
        "round_prefer_floor": fraction > 0.5,
        "round_prefer_ceil": fraction >= 0.5,
    }[rule]
    return np.clip(floor.astype(np.int64) + up, 0, in_size - 1)


def linear_taps(in_size: int, out_size: int, scale: float, coordinates: Coordinates) -> Taps:
    """The two neighbours of each output index along one axis, and the weight of the upper one."""
    x = np.clip(_coordinates(in_size, out_size, scale, coordinates), 0, in_size - 1)
    low = np.floor(x).astype(np.int64)
    high = np.minimum(low + 1, in_size - 1)
    weight = np.rint((x - low) * (1 << WEIGHT_BITS)).astype(np.int64)
    return Taps(low, high, weight)


def _coordinates(
    in_size: int, out_size: int, scale: float, coordinates: Coordinates
) -> npt.NDArray[np.float32]:
    one, half, ratio = np.float32(1), np.float32(0.5), np.float32(scale)
    i = np.arange(out_size, dtype=np.float32)
    if coordinates == "asymmetric":
        return i / ratio
    if out_size == 1 and coordinates != "half_pixel":
        return np.zeros(1, np.float32)
    if coordinates == "align_corners":
        return i * (np.float32(in_size) - one) / (np.float32(out_size) - one)
    return (i + half) / ratio - half
