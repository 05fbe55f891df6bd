"""Instructions as ONNX operators on floats that hold integers, and so compute them exactly.

A tensor is its steps q - z in float32. An accumulator a, the sum of products, is exact in float32
while no partial sum can exceed 2**24, in whatever order and on however many threads it is taken:

    |partial sum| <= max|x| * sum |w| + |b|

A factor is M * 2**-s with |M| < 2**31, an exact float64. The product with it is exact where
|a| * |M| <= 2**53. Where it may not be, the rounded float64 and the exact code are still both
monotonic in a: they are equal everywhere if they are where the code changes, at the three integers
around every threshold  (k + 1/2) * 2**s / M  that the clamp lets through. That is tried out.

What keeps none of these bounds has no translation, and is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from pipeline.bundle.program import Instruction, Program, Tensor
from pipeline.graph import Building, Value
from pipeline.graph import Tensor as Made
from pipeline.kernels import rounding
from pipeline.kernels.arrays import Int64
from pipeline.kernels.rounding import FixedPoint, Real, Rounding

SINGLE, DOUBLE = 1 << 24, 1 << 53  # integers that float32 and float64 hold
FLOAT, INT32, FLOAT64 = 1, 6, 11  # of ONNX's element types
CODES = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5}
MOST_SHIFT = 52  # with 10 bits of code, what int64 holds
MOST_TRIED = 1 << 22  # thresholds of one instruction
IDENTITY = (1 << 30, 30)  # mantissa and shift of the factor 1


class InexactError(Exception):
    """No float holds what the instruction computes."""


class Call(NamedTuple):
    """An instruction to translate: its grids, and what holds the steps it reads."""

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
        """The most steps that the input may hold."""
        return _largest(self.inputs[index])

    def window(self) -> dict[str, object]:
        attributes = self.step.attributes
        return {name: attributes[name] for name in ("pads", "strides", "dilations")}


def translated(
    building: Building, step: Instruction, program: Program, held: Mapping[str, Value]
) -> Value:
    """The steps that the instruction makes; `held` has those it reads. Raises InexactError."""
    tensors = program.tensors
    grids, output = tuple(tensors[name] for name in step.inputs), tensors[step.outputs[0]]
    read = tuple(held[name] for name in step.inputs)
    return TRANSLATIONS[step.op](Call(building, step, grids, output, read))


def is_translatable(step: Instruction, program: Program) -> bool:
    """Whether there is a translation, bounds aside."""
    around = [program.tensors[name] for name in (*step.inputs, *step.outputs)]
    known = all(tensor.dtype in (*CODES, "float32") for tensor in around)
    return step.op in TRANSLATIONS and known


def held_of(building: Building, given: Value, grid: Tensor) -> Value:
    """The steps behind codes; a float tensor is held as it is."""
    if grid.scale is None:
        return given
    (real,) = building.add("Cast", [given], ["steps"], to=FLOAT)
    zero = building.constant("zero_point", np.array(grid.zero_point, np.float32))
    return building.add("Sub", [real, zero], ["steps"])[0]


def given_back(building: Building, held: Value, name: str, grid: Tensor) -> Value:
    """The codes that these steps stand for; a float tensor as it is held."""
    if grid.scale is None:
        return held
    zero = building.constant("zero_point", np.array(grid.zero_point, np.float32))
    (moved,) = building.add("Add", [held, zero], ["moved"])
    made = Made(name, grid.shape, grid.dtype)
    return building.add("Cast", [moved], [made], to=CODES[grid.dtype])[0]


# -- accumulator → steps of the output grid ------------------------------------------------


def _finished(call: Call, accumulator: Value, bound: int, trailing: int = 0) -> Value:
    """Factor, rounding and clamp of an exact accumulator of magnitude `bound` at most."""
    roles = (call.step.constants["mantissa"], call.step.constants["shift"])
    return _clamped(call, _rescaled(call, accumulator, bound, roles, trailing))


def _rescaled(
    call: Call, x: Value, bound: int, factor: tuple[np.ndarray, np.ndarray], trailing: int = 0
) -> Value:
    mantissa, shift = (
        np.asarray(given.reshape(*given.shape, *(1,) * trailing) if given.ndim == 1 else given)
        for given in factor
    )
    if bool(np.all(mantissa == IDENTITY[0]) and np.all(shift == IDENTITY[1])):
        return x
    widest = bound * np.abs(mantissa.astype(object))
    wide = np.asarray(widest > DOUBLE)
    if wide.any() and not _agree(call, mantissa[wide], shift[wide]):
        raise InexactError
    real = np.asarray(np.ldexp(mantissa.astype(np.float64), -shift))
    scaled = call.add("Mul", call.add("Cast", x, to=FLOAT64), call.constant(real, np.float64))
    return _rounded(call, scaled)


def _rounded(call: Call, x: Value) -> Value:
    rule: Rounding = call.step.attributes["rounding"]
    return call.add("Cast", ROUNDED[rule](call, x), to=FLOAT)


def _half_away(call: Call, x: Value) -> Value:
    half = call.constant(np.array(0.5), np.float64)
    size = call.add("Floor", call.add("Add", call.add("Abs", x), half))
    return call.add("Mul", size, call.add("Sign", x))


ROUNDED: dict[Rounding, Callable[[Call, Value], Value]] = {
    "half_even": lambda call, x: call.add("Round", x),
    "half_up": lambda call, x: call.add(
        "Floor", call.add("Add", x, call.constant(np.array(0.5), np.float64))
    ),
    "half_away": _half_away,
}


def _agree(call: Call, mantissa: Int64, shift: Int64) -> bool:
    """Whether the float64 product gives the exact code around every threshold of these factors."""
    low, high = _limits(call)
    m, s = mantissa[:, None], shift[:, None]
    if (high - low) * m.size > MOST_TRIED or m.min() <= 0 or s.min() < 1 or s.max() > MOST_SHIFT:
        return False
    threshold = ((2 * np.arange(low, high) + 1) << (s - 1)) // m
    rule: Rounding = call.step.attributes["rounding"]
    real: Real = np.ldexp(m.astype(np.float64), -s)
    return all(
        np.array_equal(
            rounding.ROUNDED[rule](np.multiply(a, real)),
            rounding.rescale(a, FixedPoint(m, s), rule),
        )
        for a in (threshold - 1, threshold, threshold + 1)
    )


def _limits(call: Call) -> tuple[int, int]:
    """The clamp in steps."""
    zero = call.output.zero_point
    return call.step.attributes["low"] - zero, call.step.attributes["high"] - zero


def _clamped(call: Call, x: Value) -> Value:
    low, high = (call.constant(np.array(limit), np.float32) for limit in _limits(call))
    return call.add("Clip", x, low, high)


def _largest(grid: Tensor) -> int:
    limits = np.iinfo(grid.dtype)
    return max(abs(limits.min - grid.zero_point), abs(limits.max - grid.zero_point))


def _held_by(bound: int, limit: int) -> int:
    if bound > limit:
        raise InexactError
    return bound


# -- the instructions ----------------------------------------------------------------------


def _reach(call: Call, weight: np.ndarray, axes: tuple[int, ...]) -> int:
    """The bound on every partial sum of x * w. Raises InexactError."""
    largest = np.abs(weight.astype(np.int64)).sum(axis=axes).max(initial=0)
    return _held_by(call.largest() * int(largest), SINGLE)


def _biased(
    call: Call, total: Value, reach: int, bias: np.ndarray | None, trailing: int = 0
) -> Value:
    """A bias that float32 might not hold is added in float64."""
    if bias is None:
        return _finished(call, total, reach, trailing)
    bound = reach + int(np.abs(bias.astype(np.int64)).max(initial=0))
    given = bias.reshape(*bias.shape, *(1,) * trailing)
    if bound <= SINGLE:
        total = call.add("Add", total, call.constant(given, np.float32))
    else:
        wide = call.add("Cast", total, to=FLOAT64)
        total = call.add("Add", wide, call.constant(given, np.float64))
    return _finished(call, total, bound, trailing)


def _conv(call: Call) -> Value:
    weight, bias = call.step.constants["weight"], call.step.constants.get("bias")
    reach = _reach(call, weight, tuple(range(1, weight.ndim)))
    filters = call.constant(weight, np.float32)
    attributes = {**call.window(), "group": call.step.attributes["group"]}
    total = call.add("Conv", call.read[0], filters, **attributes)
    return _biased(call, total, reach, bias, trailing=weight.ndim - 2)


def _matmul(call: Call) -> Value:
    if len(call.read) > 1:
        depth = call.inputs[0].shape[-1]
        bound = _held_by(call.largest(0) * call.largest(1) * depth, SINGLE)
        return _finished(call, call.add("MatMul", *call.read), bound)
    weight, bias = call.step.constants["weight"], call.step.constants.get("bias")
    reach = _reach(call, weight, (weight.ndim - 2,))
    total = call.add("MatMul", call.read[0], call.constant(weight, np.float32))
    return _biased(call, total, reach, bias)


def _add(call: Call) -> Value:
    mantissa, shift = call.step.constants["mantissa"], call.step.constants["shift"]
    bounds = [call.largest(index) * abs(int(mantissa[index])) for index in range(2)]
    _held_by(sum(bounds), DOUBLE)
    left, right = (
        call.add(
            "Mul",
            call.add("Cast", x, to=FLOAT64),
            call.constant(np.asarray(np.ldexp(float(m), -shift)), np.float64),
        )
        for x, m in zip(call.read, mantissa, strict=True)
    )
    return _clamped(call, _rounded(call, call.add("Add", left, right)))


def _mul(call: Call) -> Value:
    bound = _held_by(call.largest(0) * call.largest(1), SINGLE)
    return _finished(call, call.add("Mul", *call.read), bound)


def _moved(op: str, name: str) -> Callable[[Call], Value]:
    def move(call: Call) -> Value:
        moved = call.add(op, call.read[0], **{name: call.step.attributes[name]})
        return _finished(call, moved, call.largest())

    return move


def _reshape(call: Call) -> Value:
    shape = call.constant(np.array(call.step.attributes["shape"]), np.int64)
    return _finished(call, call.add("Reshape", call.read[0], shape), call.largest())


def _concat(call: Call) -> Value:
    mantissa, shift = call.step.constants["mantissa"], call.step.constants["shift"]
    parts = [
        _rescaled(call, x, call.largest(index), (mantissa[index], shift[index]))
        for index, x in enumerate(call.read)
    ]
    return _clamped(call, call.add("Concat", *parts, axis=call.step.attributes["axis"]))


def _lookup(call: Call) -> Value:
    grid, table = call.inputs[0], call.step.constants["table"].astype(np.int64)
    first = call.constant(np.array(grid.zero_point - np.iinfo(grid.dtype).min), np.float32)
    index = call.add("Cast", call.add("Add", call.read[0], first), to=INT32)
    return call.add("Gather", call.constant(table - call.output.zero_point, np.float32), index)


def _max_pool(call: Call) -> Value:
    window, kernel = call.window(), call.step.attributes["kernel"]
    if max(call.step.attributes["pads"]) >= min(kernel):
        raise InexactError  # onnxruntime pools no window of padding alone
    largest = call.add("MaxPool", call.read[0], kernel_shape=kernel, **window)
    return _finished(call, largest, call.largest())


def _average_pool(call: Call) -> Value:
    """A sum is a convolution with ones."""
    kernel, channels = call.step.attributes["kernel"], call.inputs[0].shape[1]
    bound = _held_by(call.largest() * prod(kernel), SINGLE)
    ones = call.constant(np.ones((channels, 1, *kernel)), np.float32)
    total = call.add("Conv", call.read[0], ones, group=channels, **call.window())
    return _finished(call, total, bound)


def _mean(call: Call) -> Value:
    axes, keep = call.step.attributes["axes"], call.step.attributes["keepdims"]
    bound = call.largest() * prod(call.inputs[0].shape[axis] for axis in axes)
    at = call.constant(np.array(axes), np.int64)
    total = call.add("ReduceSum", call.read[0], at, keepdims=int(keep))
    return _finished(call, total, _held_by(bound, SINGLE))


def _quantize(call: Call) -> Value:
    """As ONNX divides and rounds. NaN is refused before."""
    scale = call.constant(np.array(call.output.scale), np.float32)
    rounded = call.add("Round", call.add("Div", call.read[0], scale))
    limits, zero = np.iinfo(call.output.dtype), call.output.zero_point
    low, high = (call.constant(np.array(n - zero), np.float32) for n in (limits.min, limits.max))
    return call.add("Clip", rounded, low, high)


def _dequantize(call: Call) -> Value:
    return call.add("Mul", call.read[0], call.constant(np.array(call.inputs[0].scale), np.float32))


TRANSLATIONS: dict[str, Callable[[Call], Value]] = {
    "add": _add,
    "average_pool": _average_pool,
    "concat": _concat,
    "conv": _conv,
    "dequantize": _dequantize,
    "lookup": _lookup,
    "matmul": _matmul,
    "max_pool": _max_pool,
    "mean": _mean,
    "mul": _mul,
    "quantize": _quantize,
    "rescale": lambda call: _finished(call, call.read[0], call.largest()),
    "reshape": _reshape,
    "transpose": _moved("Transpose", "perm"),
}
