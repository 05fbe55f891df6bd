"""Constants of a model that brings its own grids: which stay quantized, and which become float.

weight      quantized, with a scale per output channel. Float on such a grid where its scales lie
            along another axis, or where the kernels only take int8 with zero point 0
bias        quantized on the grid of the products, s_x * s_w; float from any other grid
operand     of an Add, a Mul ...: quantized, with one scale
all others  float, and so is every constant of a float node
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.engine.tflite_rules import TWICE
from npumake.graph import Graph, Node, Value, array, attribute, producer
from npumake.kernels import affine
from npumake.quant.precision.grids import Grid
from npumake.quant.qdq.insert import channel_axis, groups_of_scales
from npumake.quant.qdq.pairs import DQ, Q, pair
from npumake.quant.qdq.uint8_to_int8 import SIGNED_TYPES
from npumake.targets.target import Target

BIAS_SCALE_RTOL = 1e-4  # relative error of a bias scale, a float32 product


class StoredConstant(NamedTuple):
    """A constant behind a DQ: real = scale * (codes - zero point), per channel along `axis`."""

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int

    @property
    def real(self) -> np.ndarray:
        return affine.dequantize(
            self.codes, self._per_axis(self.scale), self._per_axis(self.zero_point)
        )

    @property
    def steps(self) -> np.ndarray:
        return np.subtract(self.codes, self._per_axis(self.zero_point), dtype=np.int32)

    @property
    def is_symmetric_int8(self) -> bool:
        return self.codes.dtype == np.int8 and not self.zero_point.any()

    def _per_axis(self, values: np.ndarray) -> np.ndarray:
        return affine.per_axis(values, self.codes.ndim, self.axis)


def stored_constant(value: Value | None) -> StoredConstant | None:
    """The constant behind a DQ with a known scale; None for any other value."""
    dequantizer = None if value is None else producer(value)
    if dequantizer is None or dequantizer.op_type != DQ or len(dequantizer.inputs) < 3:
        return None
    codes, scale, zero_point = (array(parameter) for parameter in dequantizer.inputs)
    if scale is None or zero_point is None:
        return None
    if codes is None:
        codes = _codes(dequantizer.inputs[0])
    axis = attribute(dequantizer, "axis", 1)
    return None if codes is None else StoredConstant(codes, scale, zero_point, axis)


def _codes(value: Value | None) -> np.ndarray | None:
    """The codes of a float constant behind a Q, as training leaves weights."""
    quantizer = None if value is None else producer(value)
    if quantizer is None or quantizer.op_type != Q or len(quantizer.inputs) < 3:
        return None
    real, scale, zero_point = (array(parameter) for parameter in quantizer.inputs)
    if real is None or scale is None or zero_point is None:
        return None
    axis, limits = attribute(quantizer, "axis", 1), np.iinfo(zero_point.dtype)
    step, zero = (affine.per_axis(part, real.ndim, axis) for part in (scale, zero_point))
    return affine.quantize(real, step, zero, limits.min, limits.max).astype(zero_point.dtype)


def keep_codes(graph: Graph, node: Node, read: Mapping[int, Grid], target: Target) -> bool:
    """Keeps the quantized constants of an integer node whose activations lie on the grids `read`.
    Returns whether a weight moved to another grid."""
    weights, moved = RULES[node.op_type].weights, False
    for index, value in enumerate(tuple(node.inputs)):
        constant = stored_constant(value)
        if constant is None or value is None:
            continue
        if index in weights[:1]:
            moved = not _may_stay(node, constant, target) and _regrid(graph, node, index, constant)
        elif index in weights:
            if not _is_on_products(node, constant, read):
                _make_real(graph, node, index, constant)
        elif _may_be_operand(node, constant, read, target):
            if target.rounding == TWICE:
                _shift(graph, node, index, constant)
        else:
            _make_real(graph, node, index, constant)
    return moved


def is_wide(read: Mapping[int, Grid]) -> bool:
    """Whether some activation has 16 bits."""
    return any(grid.zero_point.dtype.itemsize > 1 for grid in read.values())


def _may_be_operand(
    node: Node, constant: StoredConstant, read: Mapping[int, Grid], target: Target
) -> bool:
    """Whether a constant operand may keep its grid: TensorFlow Lite's kernels want the type of the
    other operands."""
    if node.op_type not in CONSTANT_OPERANDS or constant.scale.size > 1:
        return False
    if target.rounding != TWICE:
        return True
    of_16_bits = constant.codes.dtype.itemsize > 1
    is_plain = constant.codes.dtype == np.int16 and not constant.zero_point.any()
    return of_16_bits == is_wide(read) and (is_plain or not of_16_bits)


def make_constants_real(graph: Graph, node: Node) -> None:
    """Makes the constants of a float node float."""
    for index, value in enumerate(tuple(node.inputs)):
        if (constant := stored_constant(value)) is not None:
            _make_real(graph, node, index, constant)


def _make_real(graph: Graph, node: Node, index: int, constant: StoredConstant) -> None:
    value = node.inputs[index]
    assert value is not None
    graph.set_inputs(node, {index: graph.constant(f"{value.name}_real", constant.real)})


def _may_stay(node: Node, constant: StoredConstant, target: Target) -> bool:
    """Whether the scales are per output channel, on a grid that the kernels take."""
    rank = constant.codes.ndim
    fits = constant.scale.size == 1 or constant.axis % rank == channel_axis(node) % rank
    return fits and (target.rounding != TWICE or constant.is_symmetric_int8)


def _regrid(graph: Graph, node: Node, index: int, constant: StoredConstant) -> bool:
    """Moves a weight to int8 with zero point 0, per channel: its codes less the zero point where
    they fit, else rounded to a coarser scale."""
    axis = channel_axis(node) % constant.codes.ndim
    along = constant.scale.size > 1 and constant.axis % constant.codes.ndim != axis
    reach = np.abs(constant.real if along else constant.steps).max(
        axis=affine.other_axes(constant.codes.ndim, axis)
    )
    limit = np.iinfo(np.int8).max
    scales = reach / limit if along else constant.scale.reshape(-1) * np.maximum(reach / limit, 1.0)
    scales = np.where(scales > 0, scales, 1.0).astype(np.float32)
    grid = Grid(scales, np.zeros(scales.shape, np.int8))
    value = node.inputs[index]
    assert value is not None
    real = graph.constant(f"{value.name}_real", constant.real)
    dequantized = pair(graph, real, grid, str(value.name), axis=axis, before=node).real
    graph.set_inputs(node, {index: dequantized})
    return True


def _is_on_products(node: Node, bias: StoredConstant, read: Mapping[int, Grid]) -> bool:
    """Whether a bias lies on the grid of the products."""
    factors = _bias_factors(node, bias, read)
    return factors is not None and bool(np.allclose(factors, 1.0, rtol=BIAS_SCALE_RTOL, atol=0))


def bias_factor(node: Node, read: Mapping[int, Grid]) -> float:
    """The scale of a node's int32 bias over the product of input and weight scale.

    It should be 1; the factor of the worst channel is returned, and 1 where there is no such bias.
    """
    places = RULES[node.op_type].weights if node.op_type in RULES else ()
    bias = stored_constant(node.inputs[2]) if 2 in places and len(node.inputs) > 2 else None
    factors = None if bias is None else _bias_factors(node, bias, read)
    if factors is None:
        return 1.0
    factor = float(factors[np.argmax(np.abs(factors - 1.0))])
    return factor if abs(factor - 1.0) > BIAS_SCALE_RTOL else 1.0


def _bias_factors(node: Node, bias: StoredConstant, read: Mapping[int, Grid]) -> np.ndarray | None:
    """The factor of each channel; None for anything but an int32 bias with a quantized weight."""
    weight = stored_constant(node.inputs[1])
    if weight is None or 0 not in read or bias.codes.dtype != np.int32 or bias.zero_point.any():
        return None
    scale = read[0].scale.reshape(-1).astype(np.float64) * weight.scale.reshape(-1)
    scale = np.tile(scale, groups_of_scales(node))
    return bias.scale.reshape(-1) / scale if bias.scale.size in (1, scale.size) else None


def _shift(graph: Graph, node: Node, index: int, constant: StoredConstant) -> None:
    """Moves a constant to the signed type with the same values."""
    kind = SIGNED_TYPES.get(str(constant.codes.dtype))
    value = node.inputs[index]
    if kind is None or value is None:
        return
    low = np.iinfo(kind).min
    codes, zero_point = (
        (unsigned.astype(np.int64) + low).astype(kind)
        for unsigned in (constant.codes, constant.zero_point)
    )
    name = str(value.name)
    scale = graph.constant(f"{name}_scale", constant.scale.reshape(()))
    inputs = [graph.constant(f"{name}_codes", codes), scale]
    inputs.append(graph.constant(f"{name}_zero_point", zero_point.reshape(())))
    graph.set_inputs(node, {index: graph.insert(DQ, inputs, f"{name}_signed", before=node)})
