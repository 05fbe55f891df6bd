"""One instruction with its grids: the argument of every reference kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.kernels.rounding import FixedPoint, blocks, part_of, rescale


class Call(NamedTuple):
    """One instruction and the grids of its inputs and output."""

    step: Instruction
    inputs: tuple[Tensor, ...]
    output: Tensor

    def constant(self, role: str) -> np.ndarray:
        return self.step.constants[role]

    def attribute(self, name: str) -> Any:
        return self.step.attributes[name]

    def window(self) -> tuple[list[int], list[int], list[int]]:
        """Pads, strides and dilations of the window."""
        attributes = self.step.attributes
        return attributes["pads"], attributes["strides"], attributes["dilations"]

    def finished(self, accumulator: np.ndarray, trailing: int = 0) -> np.ndarray:
        """Accumulator → codes: bias, factor, rounding, zero point, clamp.

        A factor or bias per channel stands in front of `trailing` axes.
        """
        mantissa, shift, bias = (
            values.reshape(*values.shape, *(1,) * trailing) if values.ndim == 1 else values
            for values in (self.constant("mantissa"), self.constant("shift"), self.bias)
        )
        rank, codes = accumulator.ndim, np.empty(accumulator.shape, self.output.dtype)
        for part in blocks(accumulator.shape):
            factor = FixedPoint(part_of(mantissa, part, rank), part_of(shift, part, rank))
            total = accumulator[part] + part_of(bias, part, rank)  # a bias may exceed float32
            codes[part] = self.clamped(rescale(total, factor, self.attribute("rounding")))
        return codes

    @property
    def bias(self) -> np.ndarray:
        return self.step.constants.get("bias", np.zeros((), np.int32))

    @property
    def real_scale(self) -> np.ndarray:
        """Scale of the input: a scalar, or one number per channel of int32 sums, shaped to
        broadcast."""
        return self.step.constants.get("scale", np.array(self.inputs[0].scale, np.float32))

    def clamped(self, codes: np.ndarray) -> np.ndarray:
        """Adds the zero point and clamps to the output's codes, in place; the caller owns
        `codes`."""
        shifted = np.asarray(codes)
        shifted += self.output.zero_point
        return np.clip(shifted, self.attribute("low"), self.attribute("high"), out=shifted)


def steps_of(q: np.ndarray, grid: Tensor) -> np.ndarray:
    """q - zero_point, as signed integers."""
    return q.astype(np.int32) - grid.zero_point
