"""A node on its grids: what a rule of the table is given, and what it answers.

An activation is real = s * (q - z). The factor of a requantisation is what multiplies the exact
integer accumulator to give codes of the output grid, e.g. s_x * s_w / s_y for a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.digest import Json
from npumake.graph import Node, Value, is_given, producer
from npumake.kernels import affine, rounding


class Operand(NamedTuple):
    """An activation the node reads: the name and grid of an integer tensor."""

    name: str
    grid: Tensor

    @property
    def scale(self) -> float:
        assert self.grid.scale is not None
        return self.grid.scale


class QuantizedConstant(NamedTuple):
    """A constant the node reads: zero point already subtracted, scale per channel or scalar."""

    values: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class QuantizedNode:
    """A node with its integer surroundings."""

    node: Node
    operands: tuple[Operand, ...]  # activations, in the order of the node's inputs
    weights: tuple[QuantizedConstant, ...]  # constants of the positions the rule names, likewise
    output: Tensor

    @property
    def scale(self) -> float:
        assert self.output.scale is not None
        return self.output.scale


class LoweredStep(NamedTuple):
    """What an instruction needs besides its tensors."""

    op: str
    constants: dict[str, np.ndarray]
    attributes: dict[str, Json]


class Rule(NamedTuple):
    lower: Callable[[QuantizedNode], LoweredStep]
    fits: Callable[[Node], bool] = lambda _: True
    weights: tuple[int, ...] = ()  # input positions that are weights when they are constant


def is_constant(value: Value | None) -> bool:
    """Whether the value is a constant, Q/DQ around it or not."""
    while value is not None and not is_given(value):
        maker = producer(value)
        if maker is None or maker.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            return False
        value = maker.inputs[0]
    return value is not None


def constant_parameters(node: Node) -> bool:
    """Whether everything but the first input is given in the graph."""
    return all(is_given(value) for value in node.inputs[1:] if value is not None)


def factor(real: Any) -> dict[str, np.ndarray]:
    """Constants of a requantisation by `real`: a scalar, or one number per channel or place."""
    fixed = rounding.fixed_point(np.asarray(real, np.float64))
    return {"mantissa": fixed.mantissa, "shift": fixed.shift}


def code_of(real: float, grid: Tensor) -> int:
    """A real number as QuantizeLinear would write it, saturation included."""
    limits = np.iinfo(grid.dtype)
    scale = np.float32(grid.scale or 1.0)
    bound = np.asarray(real, np.float32)
    return int(affine.quantize(bound, scale, grid.zero_point, limits.min, limits.max))


def operand_names(site: QuantizedNode) -> tuple[str, ...]:
    return tuple(operand.name for operand in site.operands)


def source_name(node: Node) -> str:
    """That of the first tensor a node reads, empty where it reads none."""
    return str(node.inputs[0].name) if node.inputs[0] is not None else ""


def instruction(
    name: str, step: LoweredStep, inputs: tuple[str, ...], output: str, origins: tuple[str, ...]
) -> Instruction:
    """The step as one instruction on named tensors."""
    return Instruction(step.op, name, inputs, (output,), step.constants, step.attributes, origins)
