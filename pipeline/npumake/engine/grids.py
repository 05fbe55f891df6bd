"""Reads scales, zero points and constants from the Q and DQ nodes around a node."""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import Tensor
from npumake.engine.quantized_node import QuantizedConstant
from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.errors import GraphError
from npumake.graph import Node, Value, array, is_float, is_guard, producer, shape
from npumake.graph.qdq import Grid, axis_of, codes_dtype, dequantizer_of, grid_of


def dequantizer(value: Value | None) -> Node | None:
    """The DQ that produces `value`, also behind the guard of a division."""
    maker = None if value is None else producer(value)
    is_guarded = maker is not None and is_guard(maker) and maker.inputs[0] is not None
    return dequantizer_of(maker.inputs[0] if maker is not None and is_guarded else value)


def has_wide_weight(node: Node) -> bool:
    """Whether the layer has a constant int16 weight, which makes its bias 64 bits wide."""
    maker = dequantizer(node.inputs[1]) if len(node.inputs) > 1 else None
    return maker is not None and codes_dtype(maker) == np.int16


def on_grids(node: Node) -> bool:
    """Whether every operand of the node has a grid. Parameters (bounds of a Clip, scales of a
    Resize) and a bias beside int16 weights need none."""
    weights = RULES[node.op_type].weights
    for index, value in enumerate(node.inputs):
        is_bias = index in weights[1:] and has_wide_weight(node)
        computed_with = not is_bias and (
            index == 0 or index in weights or node.op_type in CONSTANT_OPERANDS
        )
        if not is_float(value) or (array(value) is not None and not computed_with):
            continue
        if dequantizer(value) is None:
            return False
    return True


def _grid(node: Node) -> Grid:
    """The grid of a Q or DQ node. Raises GraphError unless it is constant."""
    grid = grid_of(node)
    if grid is None:
        message = f"the scale of `{node.name}` is computed; only constants can be compiled"
        raise GraphError(message, hint="quantize the model statically")
    scale = grid.scale
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        message = f"the scale of `{node.name}` is {scale.min():g}, not a positive finite number"
        raise GraphError(message, hint="quantize the model again")
    return grid


def tensor_on_grid(node: Node, value: Value) -> Tensor:
    """The per-tensor grid of a Q or DQ node for `value`. Raises GraphError for a per-channel
    one."""
    scale, zero_point = _grid(node)
    if scale.size != 1:
        message = f"`{node.name}` is per channel; an activation has one scale"
        raise GraphError(
            message, hint="quantize the model again, with one scale for each activation"
        )
    dtype = str(value.dtype.numpy()) if value.dtype else str(zero_point.dtype)
    return Tensor(shape(value), dtype, float(scale.reshape(-1)[0]), int(zero_point.reshape(-1)[0]))


def weights_of(maker: Node) -> QuantizedConstant:
    """The integers of a constant behind a DQ, zero point subtracted, and their scale."""
    values = array(maker.inputs[0])
    assert values is not None
    scale, zero_point = _grid(maker)
    if not zero_point.any():
        return QuantizedConstant(values, scale)
    axis = axis_of(maker)
    per_axis = [-1 if index == axis else 1 for index in range(values.ndim)]
    wide = np.dtype(
        np.int16 if values.dtype.itemsize == 1 else np.int32
    )  # one bit more than the codes
    offset = zero_point.astype(wide).reshape(per_axis if zero_point.size > 1 else ())
    return QuantizedConstant(np.subtract(values, offset, dtype=wide), scale)


def wide_bias(value: Value, read: Tensor, weight: QuantizedConstant) -> QuantizedConstant:
    """A 64-bit bias on the grid of the products: rint(b / (s_x * s_w)). A quantized bias keeps the
    codes and scale of its own DQ."""
    scale = (read.scale or 1.0) * weight.scale.astype(np.float64).reshape(-1)
    maker, bias = dequantizer(value), array(value)
    if maker is not None:
        codes, own = weights_of(maker)
        real = codes.reshape(-1) * own.reshape(-1).astype(np.float64)
    else:
        assert bias is not None
        real = bias.reshape(-1).astype(np.float64)
    grid = np.tile(scale, max(1, real.size // scale.size))  # repeated per group of a ConvTranspose
    return QuantizedConstant(np.rint(real / grid).astype(np.int64), grid)
