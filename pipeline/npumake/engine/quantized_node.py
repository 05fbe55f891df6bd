"""A node with its grids, and the lowered form that a rule returns for it.

An activation is real = s * (q - z). The factor of a requantization multiplies the exact integer
accumulator to give codes of the output grid, e.g. s_x * s_w / s_y for a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.digest import Json
from npumake.graph import Node, Value, is_given
from npumake.graph.qdq import before_qdq
from npumake.kernels import affine, rounding


class Operand(NamedTuple):
    """An activation input: the name and grid of an integer tensor."""

    name: str
    grid: Tensor

    @property
    def scale(self) -> float:
        assert self.grid.scale is not None
        return self.grid.scale


class QuantizedConstant(NamedTuple):
    """A constant input: zero point subtracted, scale per channel or scalar."""

    values: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class QuantizedNode:
    """A node with its operands, weights and output grid."""

    node: Node
    operands: tuple[Operand, ...]  # activations, in the order of the node's inputs
    weights: tuple[QuantizedConstant, ...]  # constants at the rule's weight positions, likewise
    output: Tensor

    @property
    def scale(self) -> float:
        assert self.output.scale is not None
        return self.output.scale


class LoweredStep(NamedTuple):
    """Kind, constants and attributes of an instruction, without its tensors."""

    op: str
    constants: dict[str, np.ndarray]
    attributes: dict[str, Json]


class Rule(NamedTuple):
    lower: Callable[[QuantizedNode], LoweredStep]
    fits: Callable[[Node], bool] = lambda _: True
    weights: tuple[int, ...] = ()  # input positions that are weights when constant


def is_constant(value: Value | None) -> bool:
    """Whether the value is a constant, also behind Q/DQ."""
    return is_given(value) or (value is not None and is_given(before_qdq(value)))


def constant_parameters(node: Node) -> bool:
    """Whether every input but the first is constant."""
    return all(is_given(value) for value in node.inputs[1:] if value is not None)


def factor(real: Any) -> dict[str, np.ndarray]:
    """Mantissa and shift of a requantization by `real`: scalar, per channel or per position."""
    fixed = rounding.fixed_point(np.asarray(real, np.float64))
    return {"mantissa": fixed.mantissa, "shift": fixed.shift}


def code_of(real: float, grid: Tensor) -> int:
    """The code of a real number as a Q computes it, saturated."""
    limits = np.iinfo(grid.dtype)
    scale = np.float32(grid.scale or 1.0)
    bound = np.asarray(real, np.float32)
    return int(affine.quantize(bound, scale, grid.zero_point, limits.min, limits.max))


def operand_names(site: QuantizedNode) -> tuple[str, ...]:
    return tuple(operand.name for operand in site.operands)


def source_name(node: Node) -> str:
    """The name of the node's first input; empty without one."""
    return str(node.inputs[0].name) if node.inputs[0] is not None else ""


def instruction(
    name: str, step: LoweredStep, inputs: tuple[str, ...], output: str, origins: tuple[str, ...]
) -> Instruction:
    """The step as an instruction on named tensors."""
    return Instruction(step.op, name, inputs, (output,), step.constants, step.attributes, origins)
