"""Integers held in floats: the bounds within which onnxruntime computes them exactly.

A tensor holds its steps q - z in float32. An accumulator a, the sum of products, is exact in
float32 while no partial sum can exceed 2**24, in any order and on any number of threads:

    |partial sum| <= max|x| * sum |w| + |b|

A factor is M * 2**-s with |M| < 2**31, an exact float64. The product with it is exact where |a| *
|M| <= 2**53. Beyond that it is rounded, and gives another code only next to a tie
(npumake.engine.ties). Hardly any 8-bit output has such a tie. Of a 16-bit one with 200 channels
some are near, and `_agree` tries the products beside them.

Where one gives another code, the mantissa is split, M = 2**n * m1 + m0:

    a * M = 2**n * p + q    p = a * m1    q = a * m0

A tie is a multiple of 2**n, so of the fraction of q * 2**-n it only matters whether there is one (a
sticky bit). This sum is an exact float64, and rounds as a * M * 2**-s does:

    (2 p + floor(q * 2**-n) + ceil(q * 2**-n)) * 2**(n - 1 - s)

An instruction outside these bounds has no translation and runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.bundle.program import SUMS, Instruction, Tensor
from npumake.engine import ties
from npumake.graph import Building, Value
from npumake.graph import TensorSpec as Made
from npumake.kernels.arrays import Int64
from npumake.kernels.rounding import MANTISSA_BITS, Rounding, Whole

SINGLE_BITS = 23  # of a float32 behind its first
SINGLE, DOUBLE = 1 << 24, 1 << 53  # largest integers that float32 and float64 hold exactly
FLOAT, INT32, FLOAT64 = 1, 6, 11  # numbers of ONNX's element types
CODES = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, SUMS: INT32}
MAX_TRIED_TIES = 1 << 12  # of one instruction
TOP_BITS = 52  # of 2 p
IDENTITY = (1 << 30, 30)  # mantissa and shift of the factor 1


class InexactError(Exception):
    """Floats cannot compute the instruction exactly."""


class TranslatedCall(NamedTuple):
    """An instruction to translate: its grids, and the values that hold its input steps."""

    building: Building
    step: Instruction
    inputs: tuple[Tensor, ...]
    output: Tensor
    read: tuple[Value, ...]

    def add(self, op: str, *inputs: Value | None, **attributes: object) -> Value:
        return self.building.add(op, inputs, [f"{self.step.outputs[0]}/{op}"], **attributes)[0]

    def constant(self, values: np.ndarray, dtype: type[np.generic]) -> Value:
        return self.building.constant(f"{self.step.outputs[0]}/constant", values.astype(dtype))

    def largest(self, index: int = 0) -> int:
        """The largest magnitude of the input's steps."""
        return _largest(self.inputs[index])

    def window(self) -> dict[str, object]:
        attributes = self.step.attributes
        return {name: attributes[name] for name in ("pads", "strides", "dilations")}


def steps_of(building: Building, value: Value, grid: Tensor) -> Value:
    """q - z of the codes, in float32; a float tensor is returned unchanged."""
    if grid.scale is None:
        return value
    (real,) = building.add("Cast", [value], ["steps"], to=FLOAT)
    zero = building.constant("zero_point", np.array(grid.zero_point, np.float32))
    return building.add("Sub", [real, zero], ["steps"])[0]


def codes_of(building: Building, steps: Value, name: str, grid: Tensor) -> Value:
    """The codes of these steps; a float tensor is returned unchanged."""
    if grid.scale is None:
        return steps
    zero = building.constant("zero_point", np.array(grid.zero_point, np.float32))
    (moved,) = building.add("Add", [steps, zero], ["moved"])
    spec = Made(name, grid.shape, grid.dtype)
    return building.add("Cast", [moved], [spec], to=CODES[grid.dtype])[0]


# -- accumulator → steps of the output grid ------------------------------------------------


def finished(
    call: TranslatedCall,
    accumulator: Value,
    bound: Whole | int,
    trailing: int = 0,
    middle: Whole | int = 0,
) -> Value:
    """Factor, rounding and clamp of an exact accumulator within `bound` of `middle`, each a scalar
    or one number per channel."""
    roles = (call.step.constants["mantissa"], call.step.constants["shift"])
    within = (np.asarray(middle - bound, np.int64), np.asarray(middle + bound, np.int64))
    return clamped(call, rescaled(call, accumulator, within, roles, trailing))


def rescaled(
    call: TranslatedCall,
    x: Value,
    within: tuple[Int64, Int64],
    factor: tuple[Int64, Int64],
    trailing: int = 0,
) -> Value:
    """Factor and rounding. Raises InexactError if some code in the clamp may be another, and for
    a rule that rounds more than once."""
    mantissa, shift = (np.asarray(part) for part in factor)
    if bool(np.all(mantissa == IDENTITY[0]) and np.all(shift == IDENTITY[1])):
        return call.add("Cast", x, to=FLOAT)
    _refuse_twice(call)
    m, s, low, high = (operand.ravel() for operand in np.broadcast_arrays(mantissa, shift, *within))
    reach = np.maximum(np.abs(low), np.abs(high))
    wide = reach.astype(object) * np.abs(m) > DOUBLE
    accumulator = call.add("Cast", x, to=FLOAT64)
    if wide.any() and not _agree(call, m[wide], s[wide]):
        parts = (np.asarray(_spread(part, trailing)) for part in (mantissa, shift))
        return rounded(call, _split(call, accumulator, int(reach.max()), *parts))
    real = _spread(np.ldexp(mantissa.astype(np.float64), -shift), trailing)
    return rounded(call, call.add("Mul", accumulator, call.constant(real, np.float64)))


def _spread(values: npt.NDArray[Any], trailing: int) -> npt.NDArray[Any]:
    """One number per channel, in front of so many other axes; a scalar as it is."""
    return values.reshape(*values.shape, *(1,) * trailing) if values.ndim == 1 else values


def _split(call: TranslatedCall, a: Value, reach: int, mantissa: Int64, shift: Int64) -> Value:
    """A float64 that rounds as a * M * 2**-s does. Raises InexactError if no split is exact."""
    bits = reach.bit_length()
    n = bits + MANTISSA_BITS + 1 - TOP_BITS
    refuse_inexact(bits + n, TOP_BITS)
    if int(shift.min()) <= n:
        raise InexactError
    top, rest = 2.0 * (mantissa >> n), np.ldexp(mantissa & ((1 << n) - 1), -n)
    p = call.add("Mul", a, call.constant(top, np.float64))
    q = call.add("Mul", a, call.constant(rest, np.float64))
    whole = call.add("Add", call.add("Add", p, call.add("Floor", q)), call.add("Ceil", q))
    return call.add("Mul", whole, call.constant(np.ldexp(1.0, n - 1 - shift), np.float64))


def rounded(call: TranslatedCall, x: Value) -> Value:
    """Raises InexactError for a rule that rounds more than once."""
    _refuse_twice(call)
    return call.add("Cast", ROUNDED[call.step.attributes["rounding"]](call, x), to=FLOAT)


def _refuse_twice(call: TranslatedCall) -> None:
    if call.step.attributes["rounding"] not in ROUNDED:
        raise InexactError


def _half_away(call: TranslatedCall, x: Value) -> Value:
    half = call.constant(np.array(0.5), np.float64)
    size = call.add("Floor", call.add("Add", call.add("Abs", x), half))
    return call.add("Mul", size, call.add("Sign", x))


ROUNDED: dict[Rounding, Callable[[TranslatedCall, Value], Value]] = {
    "half_even": lambda call, x: call.add("Round", x),
    "half_up": lambda call, x: call.add(
        "Floor", call.add("Add", x, call.constant(np.array(0.5), np.float64))
    ),
    "half_away": _half_away,
}


def _agree(call: TranslatedCall, mantissa: Int64, shift: Int64) -> bool:
    """Whether the float64 products of these factors, (n,), are rounded to the exact codes."""
    first, last = limits(call)
    if not ties.are_countable(mantissa, shift, first, last):
        return False
    near = ties.count_near_ties(mantissa, shift, first, last)
    factors = [(int(mantissa[n]), int(shift[n])) for n in near.nonzero()[0]]
    rule: Rounding = call.step.attributes["rounding"]
    return int(near.sum()) <= MAX_TRIED_TIES and all(
        ties.floats_agree(*factor, ties.near_ties(*factor, first, last), rule) for factor in factors
    )


def limits(call: TranslatedCall) -> tuple[int, int]:
    """The clamp bounds in steps."""
    zero = call.output.zero_point
    return call.step.attributes["low"] - zero, call.step.attributes["high"] - zero


def clamped(call: TranslatedCall, x: Value) -> Value:
    low, high = (call.constant(np.array(limit), np.float32) for limit in limits(call))
    return call.add("Clip", x, low, high)


def _largest(grid: Tensor) -> int:
    limits = np.iinfo(grid.dtype)
    return max(abs(limits.min - grid.zero_point), abs(limits.max - grid.zero_point))


def refuse_inexact(bound: int, limit: int) -> int:
    if bound > limit:
        raise InexactError
    return bound
