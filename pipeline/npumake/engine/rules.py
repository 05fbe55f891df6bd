"""RULES: the operators with an integer kernel, and how each becomes one instruction.

A rule decides from attributes and shapes whether a node fits its kernel, so it also works on the
float graph. It lowers a fitting node with the grids of its QuantizedNode.
"""

from __future__ import annotations

import math

import numpy as np

from npumake.digest import Json
from npumake.engine import functions, moving, reducing, resizing
from npumake.engine.quantized_node import (
    LoweredStep,
    QuantizedNode,
    Rule,
    constant_parameters,
    factor,
    is_constant,
)
from npumake.graph import Node, array, attribute, shape
from npumake.kernels import pool, rounding, table


def has_kernel(node: Node) -> bool:
    """Whether the node runs in integers once its inputs and output have grids."""
    rule = RULES.get(node.op_type)
    return rule is not None and node.domain in ("", "ai.onnx") and rule.fits(node)


# -- multiply and accumulate ---------------------------------------------------------------


def _accumulated(site: QuantizedNode, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Constants of x * w + b; the factor is per output channel, also for a per-tensor
    weight."""
    channels = site.output.shape[1] if site.node.op_type.startswith("Conv") else weight.shape[-1]
    weight_scale = site.weights[0].scale.astype(np.float64)
    # The weight scale of a grouped ConvTranspose is per channel of a group: repeat it per group.
    scale = np.tile(weight_scale.reshape(-1), channels // weight_scale.size)
    constants = {"weight": weight, **factor(site.operands[0].scale * scale / site.scale)}
    if len(site.weights) > 1:
        bias = site.weights[1].values.reshape(-1)
        constants["bias"] = bias if bias.dtype == np.int64 else bias.astype(np.int32)
    return constants


def _conv_fits(node: Node) -> bool:
    constant = all(is_constant(value) for value in node.inputs[1:] if value is not None)
    return constant and attribute(node, "auto_pad", "NOTSET") == "NOTSET"


def _window(node: Node, kernel: tuple[int, ...]) -> dict[str, Json]:
    rank = len(kernel)
    return {
        "kernel": list(kernel),
        "strides": list(attribute(node, "strides", (1,) * rank)),
        "dilations": list(attribute(node, "dilations", (1,) * rank)),
        "pads": list(attribute(node, "pads", (0,) * 2 * rank)),
    }


def _conv(site: QuantizedNode) -> LoweredStep:
    weight = site.weights[0].values
    window = _window(site.node, weight.shape[2:])
    window["group"] = attribute(site.node, "group", 1)
    return LoweredStep("conv", _accumulated(site, weight), window)


def _conv_transpose_fits(node: Node) -> bool:
    return attribute(node, "output_shape") is None and _conv_fits(node)


def _conv_transpose(site: QuantizedNode) -> LoweredStep:
    """Output padding reduces the end pads, as the kernel expects."""
    _, constants, attributes = _conv(site)
    rank = len(attributes["kernel"])
    extra = attribute(site.node, "output_padding", (0,) * rank)
    ends = [
        pad - extra_pad for pad, extra_pad in zip(attributes["pads"][rank:], extra, strict=True)
    ]
    pads = attributes["pads"][:rank] + ends
    return LoweredStep("conv_transpose", constants, attributes | {"pads": pads})


def _gemm_fits(node: Node) -> bool:
    plain = (attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)) == (1.0, 1.0)
    if not plain or attribute(node, "transA", 0) or not is_constant(node.inputs[1]):
        return False
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return bias is None or (is_constant(bias) and math.prod(shape(bias)[:-1]) == 1)


def _gemm(site: QuantizedNode) -> LoweredStep:
    weight = site.weights[0].values
    if attribute(site.node, "transB", 0):
        weight = np.ascontiguousarray(weight.T)
    return LoweredStep("matmul", _accumulated(site, weight), {})


def _matmul_fits(node: Node) -> bool:
    right = node.inputs[1]
    return not is_constant(right) or (right is not None and len(shape(right)) == 2)


def _matmul(site: QuantizedNode) -> LoweredStep:
    if site.weights:
        return LoweredStep("matmul", _accumulated(site, site.weights[0].values), {})
    left, right = site.operands
    return LoweredStep("matmul", factor(left.scale * right.scale / site.scale), {})


# -- elementwise ---------------------------------------------------------------------------


def _add(site: QuantizedNode) -> LoweredStep:
    """y = (s_a * a + s_b * b) / s_y: two mantissas with one shift, rounded once."""
    sign = -1.0 if site.node.op_type == "Sub" else 1.0
    left, right = (operand.scale / site.scale for operand in site.operands)
    return LoweredStep("add", _common([left, sign * right]), {})


def _common(factors: list[float]) -> dict[str, np.ndarray]:
    fixed = rounding.fixed_point_common(np.asarray(factors, np.float64))
    return {"mantissa": fixed.mantissa, "shift": fixed.shift}


def _mul(site: QuantizedNode) -> LoweredStep:
    left, right = site.operands
    return LoweredStep("mul", factor(left.scale * right.scale / site.scale), {})


def _div(site: QuantizedNode) -> LoweredStep:
    above, below = site.operands
    return LoweredStep("div", factor(above.scale / below.scale / site.scale), {})


def _rescale(site: QuantizedNode) -> LoweredStep:
    return LoweredStep("rescale", factor(site.operands[0].scale / site.scale), {})


def _prelu(site: QuantizedNode) -> LoweredStep:
    """One factor for positive values, one per slope for negative ones."""
    slope = array(site.node.inputs[1])
    assert slope is not None
    ratio = site.operands[0].scale / site.scale
    below = {f"negative_{role}": values for role, values in factor(ratio * slope).items()}
    return LoweredStep("prelu", factor(ratio) | below, {})


def _lookup(site: QuantizedNode) -> LoweredStep:
    """A function of one value becomes a table of 256 codes, or of 65536."""
    grid = site.operands[0].grid
    codes = np.arange(np.iinfo(grid.dtype).min, np.iinfo(grid.dtype).max + 1)
    real = site.operands[0].scale * (codes - grid.zero_point).astype(np.float64)
    with np.errstate(over="ignore"):  # for a code that no sample reached; infinity saturates
        values = functions.FUNCTIONS[site.node.op_type](site.node, real) / site.scale
    limits = np.iinfo(site.output.dtype)
    rounded = np.clip(np.rint(values) + site.output.zero_point, limits.min, limits.max)
    return LoweredStep("lookup", {"table": rounded.astype(site.output.dtype)}, {})


def _softmax(site: QuantizedNode) -> LoweredStep:
    """The kernel returns probabilities in units of 2**-30; the factor scales them to the
    grid."""
    levels = 1 << 8 * np.dtype(site.operands[0].grid.dtype).itemsize
    constants = {"exp_table": table.exp_table(site.operands[0].scale, levels)}
    axis = attribute(site.node, "axis", -1) % len(site.output.shape)
    unit = 2.0**-table.SOFTMAX_BITS
    return LoweredStep("softmax", constants | factor(unit / site.scale), {"axis": axis})


# -- pools -------------------------------------------------------------------------------


def _pool_fits(node: Node) -> bool:
    return len(node.outputs) == 1 and attribute(node, "auto_pad", "NOTSET") == "NOTSET"


def _pool_window(site: QuantizedNode) -> dict[str, Json]:
    """The window with effective pads: they end at the last window, also for ceil_mode."""
    window = _window(site.node, attribute(site.node, "kernel_shape"))
    window["pads"] = list(
        pool.pool_pads(
            site.operands[0].grid.shape[2:],
            window["kernel"],
            window["pads"],
            window["strides"],
            window["dilations"],
            ceil_mode=bool(attribute(site.node, "ceil_mode", 0)),
        )
    )
    return window


def _max_pool(site: QuantizedNode) -> LoweredStep:
    return LoweredStep("max_pool", factor(site.operands[0].scale / site.scale), _pool_window(site))


def _average_pool(site: QuantizedNode) -> LoweredStep:
    """The divisor differs at the border, so the factor is one per output position."""
    window = _pool_window(site)
    pads = _window(site.node, attribute(site.node, "kernel_shape"))["pads"]
    counts = pool.counts(
        site.operands[0].grid.shape[2:],
        window["kernel"],
        window["pads"],
        window["strides"],
        window["dilations"],
        pads if attribute(site.node, "count_include_pad", 0) else [0] * len(pads),
    )
    return LoweredStep("average_pool", factor(site.operands[0].scale / site.scale / counts), window)


RULES: dict[str, Rule] = {
    "Add": Rule(_add),
    "ArgMax": Rule(reducing.place),
    "ArgMin": Rule(reducing.place),
    "AveragePool": Rule(_average_pool, _pool_fits),
    "Clip": Rule(_rescale, constant_parameters),
    "Concat": Rule(moving.concat),
    "Conv": Rule(_conv, _conv_fits, weights=(1, 2)),
    "ConvTranspose": Rule(_conv_transpose, _conv_transpose_fits, weights=(1, 2)),
    "DepthToSpace": Rule(moving.depth_to_space),
    "Div": Rule(_div),
    "Expand": Rule(moving.tile, constant_parameters),
    "Flatten": Rule(moving.reshape),
    "Gather": Rule(moving.gather, constant_parameters),
    "GatherElements": Rule(moving.gather_elements, constant_parameters),
    "GatherND": Rule(moving.gather_nd, constant_parameters),
    "Gemm": Rule(_gemm, _gemm_fits, weights=(1, 2)),
    "GlobalAveragePool": Rule(reducing.mean),
    "GlobalMaxPool": Rule(reducing.largest),
    "LayerNormalization": Rule(reducing.norm, reducing.norm_fits),
    "MatMul": Rule(_matmul, _matmul_fits, weights=(1,)),
    "Max": moving.selected("maximum"),
    "MaxPool": Rule(_max_pool, _pool_fits),
    "Min": moving.selected("minimum"),
    "Mul": Rule(_mul),
    "PRelu": Rule(_prelu, constant_parameters),
    "Pad": Rule(moving.pad, moving.pad_fits),
    "ReduceMax": Rule(reducing.largest, reducing.fits),
    "ReduceMean": Rule(reducing.mean, reducing.fits),
    "ReduceMin": Rule(reducing.smallest, reducing.fits),
    "ReduceSum": Rule(reducing.total, reducing.fits),
    "Relu": Rule(_rescale),
    "Reshape": Rule(moving.reshape),
    "Resize": Rule(resizing.lower, resizing.fits),
    "Slice": Rule(moving.sliced, constant_parameters),
    "Softmax": Rule(_softmax),
    "SpaceToDepth": Rule(moving.space_to_depth, moving.blocks_fit),
    "Squeeze": Rule(moving.reshape),
    "Sub": Rule(_add),
    "Tile": Rule(moving.tile, constant_parameters),
    "Transpose": Rule(moving.transpose),
    "Unsqueeze": Rule(moving.reshape),
    **dict.fromkeys(functions.FUNCTIONS, Rule(_lookup)),
}

# A float constant at these inputs is an operand, with a grid like an activation. Elsewhere it is a
# parameter, such as the bounds of a Clip or the scales of a Resize.
CONSTANT_OPERANDS = frozenset({"Add", "Concat", "Div", "MatMul", "Max", "Min", "Mul", "Sub"})

# Operators that return indices: integers without a grid.
PLACES = frozenset({"ArgMax", "ArgMin"})
