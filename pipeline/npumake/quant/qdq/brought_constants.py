"""Constants of a model with its own grids: which stay quantized, and which become float.

weight      quantized, with a scale per output channel. Float on such a grid if its scales are
            along another axis, or if the kernels only take int8 with zero point 0
bias        quantized on the grid of the products, s_x * s_w; float from any other grid
operand     of an Add, a Mul ...: quantized, with one scale
all others  float, and so is every constant of a float node
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.engine.tflite_rules import TWICE
from npumake.graph import Graph, Node
from npumake.graph.qdq import (
    Grid,
    StoredConstant,
    insert_dequantize,
    insert_pair,
    stored_constant,
)
from npumake.kernels import affine
from npumake.quant.qdq.insert import channel_axis, groups_of_scales
from npumake.quant.qdq.uint8_to_int8 import SIGNED_TYPES
from npumake.targets.target import Target

BIAS_SCALE_RTOL = 1e-4  # relative error of a bias scale, a float32 product


def keep_codes(graph: Graph, node: Node, read: Mapping[int, Grid], target: Target) -> bool:
    """Keeps the quantized constants of an integer node whose activations are on the grids `read`.
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
    """Whether a constant operand may keep its grid: TensorFlow Lite's kernels need the type of the
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
    """Moves a weight to int8 with zero point 0, per channel: its codes minus the zero point if they
    fit, else rounded to a coarser scale."""
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
    dequantized = insert_pair(graph, real, grid, str(value.name), axis=axis, before=node).real
    graph.set_inputs(node, {index: dequantized})
    return True


def _is_on_products(node: Node, bias: StoredConstant, read: Mapping[int, Grid]) -> bool:
    """Whether a bias is on the grid of the products."""
    factors = _bias_factors(node, bias, read)
    return factors is not None and bool(np.allclose(factors, 1.0, rtol=BIAS_SCALE_RTOL, atol=0))


def bias_factor(node: Node, read: Mapping[int, Grid]) -> float:
    """The scale of a node's int32 bias over the product of input and weight scale.

    It should be 1; the factor of the worst channel is returned, and 1 if there is no such bias.
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
    stored = graph.constant(f"{name}_codes", codes)
    parameters = scale, graph.constant(f"{name}_zero_point", zero_point.reshape(()))
    real = insert_dequantize(graph, stored, parameters, f"{name}_signed", before=node)
    graph.set_inputs(node, {index: real})
