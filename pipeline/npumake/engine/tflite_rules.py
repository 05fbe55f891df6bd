"""Rules and kernels of TensorFlow Lite's arithmetic that differ by more than rounding twice.

    fully connected   the accumulator times s_x * s_w / s_y in float64, half away from zero
    add, sub   each side times 2**20 and s / (2 * max s), the sum times 2 * max s / (2**20 * s_y)
    mul        s_a * s_b / s_y in float32, as a matrix product of one scale
    average    of the codes, half away from zero: input and output share one grid
    mean       the mantissa includes the division (npumake.kernels.gemmlowp)
    softmax    gemmlowp's fixed point, onto the grid 1/256, -128
    sigmoid, tanh   in float32, whose last bit decides near the middle of two codes

int16 is symmetric, and differs in:

    products   of 64 bits, times a mantissa of 15 bits, rounded once
    fully connected   the accumulator times s_x * s_w / s_y in float64, half away from zero
    add, sub   each side times 2**15
    sigmoid, tanh, softmax    from short tables (npumake.kernels.interpolated), onto 2**-15

Source: tensorflow/lite/kernels, the reference kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from npumake.engine import litert, resizing, rules
from npumake.engine.quantized_node import LoweredStep, QuantizedNode, Rule, factor
from npumake.errors import GraphError
from npumake.graph import Node, array, attribute
from npumake.kernels import gemmlowp, interpolated, rounding
from npumake.kernels.rounding import FixedPoint, fixed_point, rescale, shortened

TWICE = "twice"
HEADROOM = {"int8": 20, "int16": 15}  # bits by which operands are shifted left
WIDE = "int16"
# The fixed output grids, by type: scale and zero point.
SEATS: Mapping[tuple[str, str], tuple[float, int]] = {
    ("Sigmoid", "int8"): (1 / 256, -128),
    ("Softmax", "int8"): (1 / 256, -128),
    ("Tanh", "int8"): (1 / 128, 0),
    **{(function, WIDE): (2.0**-15, 0) for function in ("Sigmoid", "Softmax", "Tanh")},
}


def _add(site: QuantizedNode) -> LoweredStep:
    left, right = (operand.scale for operand in site.operands)
    largest = 2.0 * max(left, right)
    sign = -1 if site.node.op_type == "Sub" else 1
    headroom = HEADROOM[site.output.dtype]
    output = largest / (2.0**headroom * site.scale)
    _refuse_coarse(site, output < 1.0)
    factors = factor([left / largest, right / largest, output])
    return LoweredStep("add_twice", factors, {"sign": sign, "headroom": headroom})


def _refuse_coarse(site: QuantizedNode, fits: bool) -> None:
    """Raises GraphError if LiteRT would fail an assertion and abort the process."""
    if not fits:
        name, out_scale = site.node.name, site.scale
        in_scale = max(operand.scale for operand in site.operands)
        message = f"`{name}` has the scale {out_scale:.3g} behind {in_scale:.3g}, which is too fine"
        raise GraphError(message, hint=f"quantization: {{cpu: [{name}]}}  leaves it in float")


def _mul(site: QuantizedNode) -> LoweredStep:
    left, right = (np.float32(operand.scale) for operand in site.operands)
    return LoweredStep("mul", factor(left * right / np.float32(site.scale)), {})


def _product(rule: str) -> Rule:
    """With weights the factor is a real number; for two tensors it is the accumulator's."""
    base = rules.RULES[rule]

    def lower(site: QuantizedNode) -> LoweredStep:
        step = base.lower(site)
        if not site.weights:
            product = np.float32(site.operands[0].scale) * np.float32(site.operands[1].scale)
            step.constants.update(factor(float(product) / site.scale))
            return _accumulated(site, step)
        constants = {role: v for role, v in step.constants.items() if role in ("weight", "bias")}
        scale = site.weights[0].scale.astype(np.float64).reshape(-1)
        real = np.asarray(site.operands[0].scale * scale / site.scale)
        return LoweredStep("fully_connected_twice", {**constants, "factor": real}, step.attributes)

    return Rule(lower, base.fits, base.weights)


def _convolution(rule: str) -> Rule:
    base = rules.RULES[rule]
    return Rule(
        lambda site: _accumulated(site, base.lower(site)),
        base.fits,
        base.weights,
    )


def _accumulated(site: QuantizedNode, step: LoweredStep) -> LoweredStep:
    """int16 products are accumulated in 64 bits and rescaled with a 15-bit mantissa."""
    if site.operands[0].grid.dtype != WIDE:
        return step
    fixed = shortened(FixedPoint(step.constants["mantissa"], step.constants["shift"]))
    constants = step.constants | {"mantissa": fixed.mantissa, "shift": fixed.shift}
    return LoweredStep(step.op, constants, step.attributes | {"rounding": "half_up"})


def _average_pool(site: QuantizedNode) -> LoweredStep:
    _refuse_other_grid(site)
    step = rules.RULES["AveragePool"].lower(site)
    counts = np.rint(1.0 / np.ldexp(step.constants["mantissa"], -step.constants["shift"]))
    return LoweredStep("average_twice", {"count": counts.astype(np.int64)}, step.attributes)


def _mean(site: QuantizedNode) -> LoweredStep:
    step = rules.RULES[site.node.op_type].lower(site)
    sizes = site.operands[0].grid.shape
    count = int(np.prod([sizes[axis] for axis in step.attributes["axes"]]))
    fixed = gemmlowp.mean_factor(site.operands[0].scale / site.scale, count)
    return LoweredStep("mean", {"mantissa": fixed.mantissa, "shift": fixed.shift}, step.attributes)


def _softmax(site: QuantizedNode) -> LoweredStep:
    _refuse_other_seat(site)
    axis = attribute(site.node, "axis", -1) % len(site.output.shape)
    return LoweredStep("softmax_twice", {}, {"axis": axis})


def _sigmoid(site: QuantizedNode) -> LoweredStep:
    """int8: the nearest code in float32; int16: interpolated from a short table."""
    if site.operands[0].grid.dtype != WIDE:
        real = np.float32(site.operands[0].scale) * _steps(site).astype(np.float32)
        values = IN_FLOAT32[site.node.op_type](real) * (np.float32(1) / np.float32(site.scale))
        return _table(
            site, rounding.ROUNDED["half_away"](values.astype(np.float64)).astype(np.int64)
        )
    _refuse_other_seat(site)
    function = {"Sigmoid": interpolated.sigmoid, "Tanh": interpolated.tanh}[site.node.op_type]
    return _table(site, function(_steps(site), site.operands[0].scale))


def _sigmoid_in_float32(x: np.ndarray) -> np.ndarray:
    """exp is rounded to float32 once, as the C library does for almost all values."""
    with np.errstate(over="ignore"):
        e = np.exp(-x.astype(np.float64)).astype(np.float32)
    return np.float32(1) / (np.float32(1) + e)


def _tanh_in_float32(x: np.ndarray) -> np.ndarray:
    return np.tanh(x.astype(np.float64)).astype(np.float32)


IN_FLOAT32: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "Sigmoid": _sigmoid_in_float32,
    "Tanh": _tanh_in_float32,
}


def _refuse_other_seat(site: QuantizedNode) -> None:
    seat = SEATS[site.node.op_type, site.output.dtype]
    if (site.scale, site.output.zero_point) != seat:
        raise GraphError(
            f"`{site.node.name}` needs the output scale {seat[0]} and the zero point {seat[1]} here"
        )


def _hard_swish(site: QuantizedNode) -> LoweredStep:
    _refuse_coarse(site, site.operands[0].scale <= 128 * site.scale)
    return _table(site, gemmlowp.hard_swish(_steps(site), site.operands[0].scale, site.scale))


def _leaky_relu(site: QuantizedNode) -> LoweredStep:
    """Both factors are computed in float32, as in the kernel."""
    in_scale, out_scale = np.float32(site.operands[0].scale), np.float32(site.scale)
    alpha = np.float32(attribute(site.node, "alpha", 0.01))
    ratio, below = float(in_scale / out_scale), float(in_scale * alpha / out_scale)
    return _table(site, gemmlowp.leaky_relu(_steps(site), ratio, below))


def _prelu(site: QuantizedNode) -> LoweredStep:
    """The slopes are codes of their own grid; their values are already on it."""
    slope = array(site.node.inputs[1])
    assert slope is not None
    codes, scale = slope_codes(slope)
    in_scale, out_scale = np.float32(site.operands[0].scale), np.float32(site.scale)
    below = {f"negative_{k}": v for k, v in factor(float(in_scale * scale / out_scale)).items()}
    return LoweredStep(
        "prelu_twice", factor(float(in_scale / out_scale)) | below | {"slope": codes}, {}
    )


def slope_codes(slope: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Symmetric int8 codes of the slopes, and their scale."""
    scale = np.float32(np.abs(slope).max(initial=0.0) / 127) or np.float32(1.0)
    return np.rint(slope / scale).astype(np.int8), scale


class Shifted(NamedTuple):
    """alpha * (x + code * scale); the sum is on a grid of scale `inner`."""

    code: int
    scale: float
    inner: float


def shifted(node: Node, scale: float) -> Shifted:
    """The parts of a HardSigmoid whose output has this scale."""
    alpha, beta = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
    unit = np.float32(abs(beta / alpha) / 127) or np.float32(1.0)
    return Shifted(int(np.sign(beta)) * 127, float(unit), float(np.float32(scale / alpha)))


def _hard_sigmoid(site: QuantizedNode) -> LoweredStep:
    """The codes of the sum on the grid s_y / alpha are the codes of y on its own grid."""
    parts = shifted(site.node, site.scale)
    scales = site.operands[0].scale, parts.scale
    largest, headroom = 2.0 * max(scales), HEADROOM["int8"]
    reals = *(s / largest for s in scales), largest / (2.0**headroom * parts.inner)
    first, second, output = map(fixed_point, reals)
    x = rescale(_steps(site) << headroom, first, "twice")
    shift = rescale(np.array([parts.code << headroom]), second, "twice")
    ends = np.rint(np.array([0.0, 1.0], np.float32) / np.float32(site.scale)).astype(np.int64)
    low, high = np.clip(ends + site.output.zero_point, -128, 127).tolist()
    result = rescale(x + shift, output, "twice") + site.output.zero_point
    codes = np.clip(result, low, high).astype(np.int8)
    return LoweredStep("lookup", {"table": codes}, {"low": low, "high": high})


def _steps(site: QuantizedNode) -> np.ndarray:
    grid = site.operands[0].grid
    limits = np.iinfo(grid.dtype)
    return np.arange(limits.min, limits.max + 1, dtype=np.int64) - grid.zero_point


def _table(site: QuantizedNode, steps: np.ndarray) -> LoweredStep:
    limits = np.iinfo(site.output.dtype)
    codes = np.clip(steps + site.output.zero_point, limits.min, limits.max)
    return LoweredStep("lookup", {"table": codes.astype(site.output.dtype)}, {})


def _resize(site: QuantizedNode) -> LoweredStep:
    """Linear: taps in units of 2**-10, only from the sizes. Nearest only moves codes."""
    step = resizing.lower(site)
    if step.op != "resize_linear":
        return step
    mode = attribute(site.node, "coordinate_transformation_mode", "half_pixel")
    before, after = site.operands[0].grid.shape, site.output.shape
    constants: dict[str, np.ndarray] = {}
    for axis in (2, 3):
        taps = gemmlowp.linear_taps(before[axis], after[axis], mode)
        named = zip(("low", "high", "weight"), taps, strict=True)
        constants |= {f"{role}_{axis}": values for role, values in named}
    return LoweredStep("resize_twice", constants, {})


def _refuse_other_grid(site: QuantizedNode) -> None:
    grid = site.operands[0].grid
    if (grid.scale, grid.zero_point) != (site.scale, site.output.zero_point):
        raise GraphError(f"`{site.node.name}` needs the same grid on input and output here")


RULES: Mapping[str, Rule] = {
    **rules.RULES,
    "Add": Rule(_add),
    "AveragePool": Rule(_average_pool, rules.RULES["AveragePool"].fits),
    "Conv": _convolution("Conv"),
    "ConvTranspose": _convolution("ConvTranspose"),
    "Gemm": _product("Gemm"),
    "GlobalAveragePool": Rule(_mean),
    "MatMul": _product("MatMul"),
    "HardSigmoid": Rule(_hard_sigmoid),
    "HardSwish": Rule(_hard_swish),
    "LeakyRelu": Rule(_leaky_relu),
    "Mul": Rule(_mul),
    "PRelu": Rule(_prelu, rules.RULES["PRelu"].fits),
    "ReduceMean": Rule(_mean, rules.RULES["ReduceMean"].fits),
    "Resize": Rule(_resize, resizing.fits),
    "Sigmoid": Rule(_sigmoid),
    "Softmax": Rule(_softmax),
    "Sub": Rule(_add),
    "Tanh": Rule(_sigmoid),
}


def rules_of(rounding: str) -> Mapping[str, Rule]:
    return RULES if rounding == TWICE else rules.RULES


def computes(node: Node, rounding: str) -> bool:
    """Whether the node runs in integers with this rounding once its inputs and output have
    grids."""
    return rules.has_kernel(node) and (rounding != TWICE or litert.supports(node))
