"""The node that computes a tensor, alone: what it read on the board, and its result unclamped.

Behind a Relu most of ours is the clamp, and nothing shows how far theirs is from it. Without the
clamp, and with more bits than a code, an offset or a factor of theirs is known to a code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.engine.reference import UNFIT_VALUES, ReferenceSession
from npumake.errors import GraphError

FINE_BITS = 8  # below a code
LIMITS = np.iinfo(np.int32)


@dataclass(frozen=True)
class LastNode:
    """`values` are those of the node's inputs."""

    step: Instruction
    program: Program
    values: Mapping[str, np.ndarray]

    @property
    def reads(self) -> tuple[np.ndarray, ...]:
        """The inputs, in steps from their zero points."""
        grids = self.program.tensors
        return tuple(
            self.values[name].astype(np.float64) - grids[name].zero_point
            for name in self.step.inputs
        )

    @cached_property
    def unclamped(self) -> np.ndarray | None:
        """Real codes of the result; None for a node whose kernel has no such result."""
        name = self.step.outputs[0]
        grid, fine = self.program.tensors[name], _fine(self.step)
        if fine is None or np.dtype(grid.dtype).kind == "f":
            return None
        wide = replace(grid, dtype="int32", zero_point=0)
        read = {n: self.program.tensors[n] for n in self.step.inputs}
        other = Program(self.step.inputs, (name,), {**read, name: wide}, (fine,))
        try:
            session = ReferenceSession(other)
            (codes,) = session.execute(fine, [self.values[n] for n in self.step.inputs])
        except (GraphError, ValueError, IndexError, *UNFIT_VALUES):
            return None
        return np.asarray(codes, np.float64) / (1 << FINE_BITS) + grid.zero_point


def _fine(step: Instruction) -> Instruction | None:
    """The step with more bits and without its clamp."""
    constants = dict(step.constants)
    if "shift" in constants:
        constants["shift"] = constants["shift"] - FINE_BITS
    elif "factor" in constants:
        constants["factor"] = constants["factor"] * float(1 << FINE_BITS)
    else:
        return None
    limits = {"low": int(LIMITS.min), "high": int(LIMITS.max)}
    attributes = {**step.attributes, **limits}
    return replace(step, constants=constants, attributes=attributes)
