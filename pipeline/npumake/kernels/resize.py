"""Nearest and linear resizing, one axis at a time.

Output index i has the input coordinate (ONNX Resize, coordinate_transformation_mode)

    half_pixel            (i + 1/2) / scale - 1/2
    pytorch_half_pixel    the same, but 0 for an output of one element
    half_pixel_symmetric  the same, plus in / 2 * (1 - out / (scale * in))
    align_corners         i * (in - 1) / (out - 1), and 0 for an output of one element
    asymmetric            i / scale

If the model gives sizes, scale is out / in, and a nearest coordinate is that exact fraction, so
ties are exact. onnxruntime (float32) and ONNX's reference (float64) each miss a few integers and
ties, never the same ones. If the model gives scales, ONNX leaves the division's precision open. The
coordinate is then float32, in onnxruntime's order of operations, and counts as a tie within 1e-6,
as there.

Linear weights are in units of 2**-22, fine enough for 16 bits. The sum over r axes, in units of
2**-(22 * r), keeps 14 * r bits. The last bit is set if any dropped bit was, so no tie appears or
disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64, Ints

Coordinates: TypeAlias = Literal[
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"
]
Nearest: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

WEIGHT_BITS = 22  # two axes and a 16-bit value stay within int64
TIE_TOLERANCE = 1e-6  # in input elements; onnxruntime's, for float32 coordinates
FRACTION_BITS = 14  # two axes and a 16-bit value stay within the limits of `rescale`


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
    """x (..., *spatial) read at `indices`, one array of shape (out,) per trailing axis of x."""
    for axis, index in enumerate(indices, x.ndim - len(indices)):
        x = np.take(x, index, axis=axis)
    return x


def linear(x: Ints, taps: Sequence[Taps]) -> Interpolated:
    """x (..., *spatial) interpolated along its last one or two axes, with one `Taps` each."""
    total = x.astype(np.int64)
    for axis, (low, high, weight) in enumerate(taps, x.ndim - len(taps)):
        weights = weight.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        below, above = total.take(low, axis), total.take(high, axis)
        total = (below << WEIGHT_BITS) + (above - below) * weights
    dropped = (WEIGHT_BITS - FRACTION_BITS) * len(taps)
    sticky = (total & ((1 << dropped) - 1)) != 0
    return Interpolated((total >> dropped) | sticky, FRACTION_BITS * len(taps))


def nearest_indices(
    in_size: int, out_size: int, scale: float | None, coordinates: Coordinates, rule: Nearest
) -> Int64:
    """The input index of each output index along one axis, of shape (out_size,).

    `scale` is None if the model gives sizes instead of scales.
    """
    if scale is None or coordinates == "align_corners":
        index = _rounded_fraction(*_fraction(in_size, out_size, coordinates), rule)
    else:
        index = _rounded_float(_coordinates(in_size, out_size, scale, coordinates), rule)
    return np.clip(index, 0, in_size - 1)


def _fraction(in_size: int, out_size: int, coordinates: Coordinates) -> tuple[Int64, int]:
    """The coordinates for scale = out_size / in_size: numerators (out_size,), denominator."""
    i = np.arange(out_size, dtype=np.int64)
    if coordinates == "align_corners":
        return i * (in_size - 1), max(out_size - 1, 1)
    if coordinates == "asymmetric":
        return i * in_size, out_size
    if coordinates == "pytorch_half_pixel" and out_size == 1:
        return i, 1
    return (2 * i + 1) * in_size - out_size, 2 * out_size


def _rounded_fraction(above: Int64, below: int, rule: Nearest) -> Int64:
    if rule == "floor":
        return above // below
    if rule == "ceil":
        return -(-above // below)
    if rule == "round_prefer_floor":  # ceil(x - 1/2)
        return -((below - 2 * above) // (2 * below))
    return (2 * above + below) // (2 * below)  # floor(x + 1/2)


def _rounded_float(x: npt.NDArray[np.float32], rule: Nearest) -> Int64:
    floor = np.floor(x)
    fraction = (x - floor).astype(np.float64)
    up = {
        "floor": np.zeros(x.shape, np.bool_),
        "ceil": fraction > 0,
        "round_prefer_floor": fraction > 0.5 + TIE_TOLERANCE,
        "round_prefer_ceil": fraction >= 0.5 - TIE_TOLERANCE,
    }[rule]
    return np.asarray(floor.astype(np.int64) + up)


def linear_taps(in_size: int, out_size: int, scale: float, coordinates: Coordinates) -> Taps:
    """The two neighbors of each output index along one axis, and the weight of the upper one."""
    x = np.clip(_coordinates(in_size, out_size, scale, coordinates), 0, in_size - 1)
    low = np.floor(x).astype(np.int64)
    high = np.minimum(low + 1, in_size - 1)
    weight = np.rint((x - low) * (1 << WEIGHT_BITS)).astype(np.int64)
    return Taps(low, high, weight)


def _coordinates(
    in_size: int, out_size: int, scale: float, coordinates: Coordinates
) -> npt.NDArray[np.float32]:
    unit, half, ratio = np.float32(1), np.float32(0.5), np.float32(scale)
    i = np.arange(out_size, dtype=np.float32)
    if coordinates == "asymmetric":
        return i / ratio
    if out_size == 1 and coordinates in ("pytorch_half_pixel", "align_corners"):
        return np.zeros(1, np.float32)
    if coordinates == "align_corners":
        return i * (np.float32(in_size) - unit) / (np.float32(out_size) - unit)
    if coordinates == "half_pixel_symmetric":
        center, width = np.float32(in_size) / np.float32(2), ratio * np.float32(in_size)
        offset = center * (unit - np.float32(out_size) / width)
        x = offset.astype(np.float64) + (i.astype(np.float64) + 0.5) / np.float64(ratio) - 0.5
        return x.astype(np.float32)
    return (i + half) / ratio - half
