"""Judges each node of a compiled file from the values in front of it in the file.

A node reads what the file itself computed, so no difference adds up over nodes:

    exact kernels    the result of an integer node equals ours
    float kernels    |code - (f(x) / scale + zero point)| <= 1/2 + E / scale
    float nodes      |y - f(x)| <= E

How a kernel rounds is data of the target (`kernels`); a listed one may be one code off. Floats are
quantized in float: kernels divide by the scale, or multiply by its reciprocal.

f is the node's meaning in float, and E what float arithmetic allows for it, twice: ours rounds as
well (npumake.debug.compiled_file.rounding_error). A code may thus differ only beside a tie.

A tensor that the file does not show is computed from those in front of it, with its own E, which
the nodes behind it inherit: these nodes are judged together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compiled_file.fault import Fault, fault_of
from npumake.debug.compiled_file.index_ties import AXES, stands_for
from npumake.debug.compiled_file.meaning import Meaning, meaning_of
from npumake.debug.compiled_file.rounding_error import rounding_error
from npumake.debug.compiled_file.runs import Arrays, CompiledPart
from npumake.debug.tensor_agreement import tensor_agreement
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import CPU
from npumake.kernels import affine

HALF = 0.5 + 1e-6  # of a code, where a real number lies on a tie
ROUNDOFF = 2.0**-24  # of float32
EXACT, FLOAT, ONE_CODE = "exact", "float", "one_code"
QUANTIZE, DEQUANTIZE, CONSTANT = "quantize", "dequantize", "constant"


class Expected(NamedTuple):
    """The value of a tensor before it is rounded to codes, and its error, both in the tensor's
    unit: codes, or real numbers."""

    center: np.ndarray
    error: np.ndarray


@dataclass
class NodeJudge:
    """Judges the nodes of one part; `run` judges one run of its file."""

    part: CompiledPart
    operators: Operators = NO_OPERATORS
    meanings: dict[str, Meaning] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.session = ReferenceSession(self.part.program, self.operators)
        self.nodes = {str(node.name): node for node in self.part.graph.nodes()}

    def run(self, computed: Arrays, taps: Arrays) -> Iterator[Fault]:
        """The nodes whose tensor in `taps` is wrong, in order. `computed` has ours, inputs too,
        for the same feed."""
        yield from _Walk(self, computed, taps).faults()

    def meaning(self, step: Instruction) -> Meaning:
        if step.name not in self.meanings:
            self.meanings[step.name] = meaning_of(step, self.part, self.session)
        return self.meanings[step.name]


class _Walk:
    """One pass over the program: `values` are those that the next node reads, `errors` what is
    uncertain of them, for tensors that the file does not show."""

    def __init__(self, judge: NodeJudge, computed: Arrays, taps: Arrays) -> None:
        self._judge, self._computed, self._taps = judge, computed, taps
        self._program = judge.part.program
        self._values: dict[str, np.ndarray] = {n: computed[n] for n in self._program.inputs}
        self._makers = {n: step for step in self._program.instructions for n in step.outputs}
        self._errors: dict[str, np.ndarray | None] = {}

    def faults(self) -> Iterator[Fault]:
        for step in self._program.instructions:
            for name, own in zip(step.outputs, self._own(step), strict=True):
                fault = self._judged(step, name, np.asarray(own))
                if fault is not None:
                    yield fault

    def _own(self, step: Instruction) -> Sequence[np.ndarray]:
        """Our results from the values in front of the step."""
        unchanged = all(self._values[name] is self._computed[name] for name in step.inputs)
        if unchanged:
            return [self._computed[name] for name in step.outputs]
        return list(self._judge.session.execute(step, [self._values[n] for n in step.inputs]))

    def _judged(self, step: Instruction, name: str, own: np.ndarray) -> Fault | None:
        tap = self._taps.get(name)
        self._values[name] = own
        if tap is None:
            return None
        self._errors[name] = None
        if _is_same(own, tap):
            return None
        self._values[name] = tap if _is_like(own, tap) else own
        error = self._beyond(step, name, own, tap)
        return fault_of(step, self._judge.part.graph, error) if error else None

    def _beyond(self, step: Instruction, name: str, own: np.ndarray, tap: np.ndarray) -> str:
        """How far the shown tensor is beyond what its node may compute; empty within."""
        grid = self._program.tensors[name]
        agreement = tensor_agreement(own, tap, grid)
        if agreement.problem or not _is_like(own, tap):
            return agreement.problem or f"it is {tap.dtype} off its grid, not {own.dtype}"
        expected = self._expected(step, name, own)
        apart = np.abs(tap.astype(np.float64) - expected.center)
        apart[tap == own] = 0.0
        beyond = ~(apart <= expected.error)
        if own.dtype.kind == "f":
            beyond &= ~np.isnan(own)
        may_stand = self._stands_for(step, own, tap)
        if may_stand is not None:
            beyond = (tap != own) & ~may_stand
        if not beyond.any():
            return ""
        count = int(beyond.sum())
        return f"its result is off by {agreement}, in {count} of {own.size} elements"

    def _stands_for(self, step: Instruction, own: np.ndarray, tap: np.ndarray) -> np.ndarray | None:
        """Where indices of uncertain values may stand for ours; None for other results."""
        error = self._error(step.inputs[0]) if step.inputs else None
        if own.dtype.kind != "i" or step.op != CPU or error is None:
            return None
        node = self._judge.meaning(step).node
        if node.op_type not in AXES:
            return None
        return stands_for(node, self._values[step.inputs[0]], error, own, tap)

    def _expected(self, step: Instruction, name: str, own: np.ndarray) -> Expected:
        """The tensor's value with all that a correct node may be off, rounding to codes too."""
        rounding = self._rounding(step)
        if step.op == CONSTANT or (rounding == EXACT and not self._is_uncertain(step)):
            return Expected(own.astype(np.float64), np.zeros(own.shape))
        center, error = self._real(step, name, own, rounding != EXACT)
        if rounding == EXACT:  # ours is the code, also where it is rounded twice
            return Expected(own.astype(np.float64), np.where(error > 0, np.ceil(error), 0.0))
        if own.dtype.kind == "f":
            return Expected(center, 2 * error)
        slack = 4 * ROUNDOFF * _codes_of(self._program.tensors[name])
        return Expected(center, HALF + slack + 2 * error + (rounding == ONE_CODE))

    def _rounding(self, step: Instruction) -> str:
        """How the file's kernel of the step rounds. Of a real number on a tie ONNX makes the even
        code, LiteRT the one away from zero."""
        if step.op in (CPU, QUANTIZE):
            return FLOAT
        node = self._judge.nodes.get(step.name)
        kind = step.op if node is None else node.op_type
        return self._judge.part.target.kernel(kind)

    def _is_uncertain(self, step: Instruction) -> bool:
        return any(self._error(name) is not None for name in step.inputs)

    def _error(self, name: str) -> np.ndarray | None:
        """What is uncertain of a value, in its unit; None if the file shows it."""
        if name not in self._errors:
            step = self._makers.get(name)
            self._errors[name] = None if step is None else self._error_of(step, name)
        return self._errors[name]

    def _error_of(self, step: Instruction, name: str) -> np.ndarray | None:
        own = self._values[name]
        expected = self._expected(step, name, own)
        if own.dtype.kind == "f":
            return expected.error if expected.error.any() else None
        reach = np.abs(expected.center - own) + expected.error
        error = np.where(reach > 2 * HALF, 1.0, 0.0) * np.ceil(expected.error)
        return error if error.any() else None

    def _real(self, step: Instruction, name: str, own: np.ndarray, rounds: bool) -> Expected:
        """The step in float, in the unit of its result, and the error of that."""
        program = self._program
        grid = program.tensors[name]
        if step.op == DEQUANTIZE:
            return self._dequantized(step, own, rounds)
        if step.op == QUANTIZE:
            x, error = self._values[step.inputs[0]], self._error(step.inputs[0])
            slack = rounds * 4 * ROUNDOFF * (np.abs(x) + (grid.scale or 0.0) * _codes_of(grid))
            return _on_grid(x, slack if error is None else error + slack, grid, step)
        meaning = self._judge.meaning(step)
        read = [_real_values(self._values[n], program.tensors[n]) for n in meaning.read]
        errors = [_real_error(self._error(n), program.tensors[n]) for n in meaning.read]
        at = step.outputs.index(name)
        error = rounding_error(meaning.compute, meaning.node, read, errors, rounds)[at]
        if step.op == CPU:
            return Expected(own.astype(np.float64), error)
        return _on_grid(np.asarray(meaning.compute(read)[at]), error, grid, step)

    def _dequantized(self, step: Instruction, own: np.ndarray, rounds: bool) -> Expected:
        """A real number is scale * (code - zero point), or low + scale * (code - lowest code)."""
        grid = self._program.tensors[step.inputs[0]]
        scale = float(np.max(step.constants.get("scale", grid.scale or 1.0)))
        error = self._error(step.inputs[0])
        slack = rounds * 4 * ROUNDOFF * scale * _codes_of(grid)
        inherited = np.zeros(own.shape) if error is None else error * scale
        return Expected(own.astype(np.float64), inherited + slack)


def _on_grid(real: np.ndarray, error: np.ndarray, grid: Tensor, step: Instruction) -> Expected:
    """Real numbers in codes, clamped as the step clamps them."""
    if grid.scale is None:  # indices
        return Expected(real.astype(np.float64), np.broadcast_to(error, real.shape))
    limits, scale = np.iinfo(grid.dtype), float(np.float32(grid.scale))
    low, high = (
        step.attributes.get("low", limits.min),
        step.attributes.get("high", limits.max),
    )
    codes = np.clip(real.astype(np.float64) / scale + grid.zero_point, low, high)
    return Expected(codes, np.broadcast_to(error / scale, codes.shape))


def _codes_of(grid: Tensor) -> float:
    """How many codes a grid has: a real number may be computed from its lowest one."""
    if grid.scale is None:
        return 0.0
    limits = np.iinfo(grid.dtype)
    return float(limits.max) - float(limits.min)


def _real_values(values: np.ndarray, grid: Tensor) -> np.ndarray:
    if grid.scale is None:
        return values
    return affine.dequantize(values, np.float32(grid.scale), grid.zero_point)


def _real_error(error: np.ndarray | None, grid: Tensor) -> np.ndarray | None:
    return error if error is None or grid.scale is None else error * grid.scale


def _is_same(own: np.ndarray, tap: np.ndarray) -> bool:
    if not _is_like(own, tap):
        return False
    return np.array_equal(own, tap, equal_nan=own.dtype.kind == "f")


def _is_like(own: np.ndarray, tap: np.ndarray) -> bool:
    return (own.shape, own.dtype) == (tap.shape, tap.dtype)
