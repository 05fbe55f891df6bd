"""Rules of reductions and of LayerNormalization."""

from __future__ import annotations

import math

import numpy as np

from npumake.digest import Json
from npumake.engine.quantized_node import LoweredStep, QuantizedNode, constant_parameters, factor
from npumake.graph import Node, array, attribute, shape
from npumake.kernels import rounding
from npumake.kernels.divide import MAX_EPSILON, MAX_ROW_ELEMENTS, NORM_BITS


def fits(node: Node) -> bool:
    return constant_parameters(node) and not attribute(node, "noop_with_empty_axes", 0)


def mean(site: QuantizedNode) -> LoweredStep:
    over = _over(site)
    count = math.prod(site.operands[0].grid.shape[axis] for axis in over["axes"])
    return LoweredStep("mean", factor(site.operands[0].scale / site.scale / count), over)


def total(site: QuantizedNode) -> LoweredStep:
    return LoweredStep("sum", factor(site.operands[0].scale / site.scale), _over(site))


def largest(site: QuantizedNode) -> LoweredStep:
    return LoweredStep("max", factor(site.operands[0].scale / site.scale), _over(site))


def smallest(site: QuantizedNode) -> LoweredStep:
    return LoweredStep("min", factor(site.operands[0].scale / site.scale), _over(site))


def _over(site: QuantizedNode) -> dict[str, Json]:
    """The reduced axes, and `keepdims`."""
    rank, node = len(site.operands[0].grid.shape), site.node
    if node.op_type.startswith("Global"):
        return {"axes": list(range(2, rank)), "keepdims": True}
    axes = sorted(axis % rank for axis in _axes(node) or range(rank))
    return {"axes": axes, "keepdims": bool(attribute(node, "keepdims", 1))}


def _axes(node: Node) -> list[int] | None:
    """From an attribute in older opsets, from a constant input in newer ones."""
    listed = array(node.inputs[1]) if len(node.inputs) > 1 else attribute(node, "axes")
    return None if listed is None else [int(axis) for axis in listed]


def place(site: QuantizedNode) -> LoweredStep:
    """ArgMax and ArgMin: codes have the order of their real values, so the indices are the
    same."""
    node = site.node
    axis = attribute(node, "axis", 0) % len(site.operands[0].grid.shape)
    keep, last = attribute(node, "keepdims", 1), attribute(node, "select_last_index", 0)
    op = "arg_max" if node.op_type == "ArgMax" else "arg_min"
    return LoweredStep(op, {}, {"axis": axis, "keepdims": bool(keep), "last": bool(last)})


def norm_fits(node: Node) -> bool:
    if (
        len(node.outputs) > 1
        or not constant_parameters(node)
        or math.prod(_row(node)) > MAX_ROW_ELEMENTS
    ):
        return False
    rank = len(_row(node))
    return all(len(shape(value)) <= rank for value in node.inputs[1:] if value is not None)


def norm(site: QuantizedNode) -> LoweredStep:
    """gamma * x + beta / s_y: x is in units of 2**-20, and the two factors share one shift."""
    row = _row(site.node)
    count, rank = math.prod(row), len(site.output.shape)
    parameters = [array(value) for value in site.node.inputs[1:]]
    gamma, *beta = (np.broadcast_to(values, row) for values in parameters if values is not None)
    scale_and_bias = np.stack([gamma, *(beta or [np.zeros(row)])]).astype(np.float64)
    fixed = rounding.fixed_point_common(scale_and_bias / site.scale / (1 << NORM_BITS))
    real = attribute(site.node, "epsilon", 1e-5) * (count / site.operands[0].scale) ** 2
    epsilon = np.array(min(round(real), MAX_EPSILON), np.int64)
    constants = {"gain": fixed.mantissa[0], "offset": fixed.mantissa[1], "shift": fixed.shift}
    axes = list(range(rank - len(row), rank))
    return LoweredStep("layer_norm", constants | {"epsilon": epsilon}, {"axes": axes})


def _row(node: Node) -> tuple[int, ...]:
    """The shape of a normalized row: the axes from `axis` on."""
    assert node.inputs[0] is not None
    return shape(node.inputs[0])[attribute(node, "axis", -1) :]
