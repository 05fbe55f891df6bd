"""Pure functions that transform constants together with their grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import TFLiteGrid, TFLiteTensor
from npumake.kernels import affine


def values_of(tensor: TFLiteTensor) -> np.ndarray:
    """The values of a constant. Raises MalformedError for a computed tensor."""
    if tensor.values is None:
        raise MalformedError(f"tensor `{tensor.name}` must be constant")
    return tensor.values


def integers(tensor: TFLiteTensor) -> list[int]:
    """A constant of sizes or indices, flat."""
    values = values_of(tensor)
    if values.dtype.kind not in "iu":
        raise MalformedError("an operator has sizes or indices that are not integers")
    return [int(value) for value in values.reshape(-1)]


def turned(tensor: TFLiteTensor, order: Sequence[int]) -> TFLiteTensor:
    """The constant with permuted axes."""
    if len(tensor.shape) != len(order):
        raise MalformedError(
            f"tensor `{tensor.name}` has rank {len(tensor.shape)}, not {len(order)}"
        )
    values, grid = values_of(tensor).transpose(order), tensor.grid
    if grid is not None and grid.scale.ndim:
        grid = replace(grid, axis=list(order).index(grid.axis))
    return replace(tensor, shape=values.shape, values=values, grid=grid)


def spread(tensor: TFLiteTensor, rank: int) -> TFLiteTensor:
    """A constant of lower rank with leading axes of 1, as in broadcasting."""
    if tensor.values is None or not 0 < len(tensor.shape) < rank:
        return tensor
    missing_axes = rank - len(tensor.shape)
    shape = (1,) * missing_axes + tensor.shape
    grid = tensor.grid and replace(tensor.grid, axis=tensor.grid.axis + missing_axes)
    return replace(tensor, shape=shape, values=tensor.values.reshape(shape), grid=grid)


def real(tensor: TFLiteTensor) -> TFLiteTensor:
    """A constant as float32: half precision widened, codes dequantized."""
    values = values_of(tensor)
    if tensor.grid is None:
        return replace(tensor, dtype="float32", values=values.astype(np.float32))
    rank, grid = len(tensor.shape), tensor.grid
    parameters = (affine.per_axis(part, rank, grid.axis) for part in (grid.scale, grid.zero_point))
    scale, zero_point = parameters
    dequantized = affine.dequantize(values, scale, zero_point)
    return replace(tensor, dtype="float32", values=dequantized, grid=None)


def bias_on(bias: TFLiteTensor, x: TFLiteGrid, weight: TFLiteGrid) -> TFLiteTensor:
    """A bias without a scale is on the accumulator's grid: s_x * s_w."""
    if bias.grid is not None:
        return bias
    scale = x.scale * weight.scale
    return replace(bias, grid=TFLiteGrid(scale, np.zeros(scale.shape, np.int32), 0))
