"""Where TensorFlow Lite's kernels do more than round twice: rules and kernels of their own.

    add, sub   each side times 2**20 and s / (2 * max s), the sum times 2 * max s / (2**20 * s_y)
    mul        s_a * s_b / s_y in float32, as a matrix product of one scale
    average    of the codes themselves, half away from zero: one grid for what is read and made
    mean       the division is worked into the mantissa (pipeline.kernels.gemmlowp)
    softmax    gemmlowp's fixed point, onto the grid 1/256, -128

All on int8; source: tensorflow/lite/kernels, the reference ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.engine import resizing, rules
from pipeline.engine.site import Rule, Site, Step, factor
from pipeline.errors import GraphError
from pipeline.graph import attribute
from pipeline.kernels import gemmlowp

TWICE = "twice"
HEADROOM = 20  # bits by which what is added is shifted left


def _add(site: Site) -> Step:
    left, right = (operand.scale for operand in site.operands)
    largest = 2.0 * max(left, right)
    sign = -1 if site.node.op_type == "Sub" else 1
    output = largest / (2.0**HEADROOM * site.scale)
    return Step("add_twice", factor([left / largest, right / largest, output]), {"sign": sign})


def _mul(site: Site) -> Step:
    left, right = (np.float32(operand.scale) for operand in site.operands)
    return Step("mul", factor(left * right / np.float32(site.scale)), {})


def _product(rule: str) -> Rule:
    """A product of one scale takes that of the accumulator in float32."""
    given = rules.RULES[rule]

    def lower(site: Site) -> Step:
        step = given.lower(site)
        scale = site.weights[0].scale if site.weights else np.float32(site.operands[1].scale)
        if scale.size == 1:
            product = np.float32(site.operands[0].scale) * np.float32(scale.reshape(-1)[0])
            step.constants.update(factor(float(product) / site.scale))
        return step

    return Rule(lower, given.fits, given.weights)


def _average_pool(site: Site) -> Step:
    _refuse_other_grid(site)
    step = rules.RULES["AveragePool"].lower(site)
    counts = np.rint(1.0 / np.ldexp(step.constants["mantissa"], -step.constants["shift"]))
    return Step("average_twice", {"count": counts.astype(np.int64)}, step.attributes)


def _mean(site: Site) -> Step:
    step = rules.RULES[site.node.op_type].lower(site)
    sizes = site.operands[0].grid.shape
    count = int(np.prod([sizes[axis] for axis in step.attributes["axes"]]))
    fixed = gemmlowp.mean_factor(site.operands[0].scale / site.scale, count)
    return Step("mean", {"mantissa": fixed.mantissa, "shift": fixed.shift}, step.attributes)


def _softmax(site: Site) -> Step:
    if (site.scale, site.output.zero_point, site.output.dtype) != (1 / 256, -128, "int8"):
        raise GraphError(f"`{site.node.name}` gives int8 on 1/256, -128 here, and nothing else")
    axis = attribute(site.node, "axis", -1) % len(site.output.shape)
    return Step("softmax_twice", {}, {"axis": axis})


def _hard_swish(site: Site) -> Step:
    return _table(site, gemmlowp.hard_swish(_steps(site), site.operands[0].scale, site.scale))


def _leaky_relu(site: Site) -> Step:
    """Both factors are of float32, as the kernel takes them."""
    read, made = np.float32(site.operands[0].scale), np.float32(site.scale)
    alpha = np.float32(attribute(site.node, "alpha", 0.01))
    ratio, below = float(read / made), float(read * alpha / made)
    return _table(site, gemmlowp.leaky_relu(_steps(site), ratio, below))


def _steps(site: Site) -> np.ndarray:
    return np.arange(-128, 128, dtype=np.int64) - site.operands[0].grid.zero_point


def _table(site: Site, steps: np.ndarray) -> Step:
    codes = np.clip(steps + site.output.zero_point, -128, 127)
    return Step("lookup", {"table": codes.astype(np.int8)}, {})


def _resize(site: Site) -> Step:
    """Linear: taps in units of 2**-10, by the sizes alone; nearest only moves codes."""
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
    return Step("resize_twice", constants, {})


def _refuse_other_grid(site: Site) -> None:
    grid = site.operands[0].grid
    if (grid.scale, grid.zero_point) != (site.scale, site.output.zero_point):
        raise GraphError(f"`{site.node.name}` reads and makes one grid here")


RULES: Mapping[str, Rule] = {
    **rules.RULES,
    "Add": Rule(_add),
    "AveragePool": Rule(_average_pool, rules.RULES["AveragePool"].fits),
    "Gemm": _product("Gemm"),
    "GlobalAveragePool": Rule(_mean),
    "MatMul": _product("MatMul"),
    "HardSwish": Rule(_hard_swish),
    "LeakyRelu": Rule(_leaky_relu),
    "Mul": Rule(_mul),
    "ReduceMean": Rule(_mean, rules.RULES["ReduceMean"].fits),
    "Resize": Rule(_resize, resizing.fits),
    "Softmax": Rule(_softmax),
    "Sub": Rule(_add),
}


def rules_of(rounding: str) -> Mapping[str, Rule]:
    return RULES if rounding == TWICE else rules.RULES
