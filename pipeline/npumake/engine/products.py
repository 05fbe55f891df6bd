"""Products in floats: convolution, MatMul and Mul, of 8- and of 16-bit operands.

The sums of 16-bit operands exceed the 2**24 that float32 holds. Where onnxruntime has a float64
kernel, the product runs in float64. Its convolution has none, so the operand is split into two
digits, each with exact float32 sums of its own:

    x = 2**d * high + low    |low| <= 2**(d - 1)    sum w x = sum w (2**d * high) + sum w low
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.bundle.program import SUMS
from npumake.engine.floats import (
    DOUBLE,
    FLOAT64,
    SINGLE,
    SINGLE_BITS,
    InexactError,
    TranslatedCall,
    finished,
    refuse_inexact,
)
from npumake.graph import Value
from npumake.kernels.arrays import Int64


def conv(call: TranslatedCall) -> Value:
    weight, bias = call.step.constants["weight"], call.step.constants.get("bias")
    sums, trailing = _weight_sums(weight, tuple(range(1, weight.ndim))), weight.ndim - 2
    filters = call.constant(weight, np.float32)
    attributes = {**call.window(), "group": call.step.attributes["group"]}

    def product(x: Value) -> Value:
        return call.add("Conv", x, filters, **attributes)

    reach, largest = call.largest() * sums, int(sums.max(initial=0))
    if call.largest() * largest <= SINGLE:
        return _biased(call, product(call.read[0]), reach, bias, trailing)
    _refuse_sums(call)
    middle = np.zeros(len(weight), np.int64) if bias is None else bias.astype(np.int64)
    column = middle.reshape(-1, *(1,) * trailing)
    total = _summed_in_digits(call, product, largest, column)
    return finished(call, total, reach, trailing, middle)


def matmul(call: TranslatedCall) -> Value:
    if len(call.read) > 1:
        depth = call.inputs[0].shape[-1]
        bound = call.largest(0) * call.largest(1) * depth
        return finished(call, _multiplied(call, "MatMul", bound, *call.read), bound)
    weight, bias = call.step.constants["weight"], call.step.constants.get("bias")
    reach = call.largest() * _weight_sums(weight, (weight.ndim - 2,))
    matrix = call.constant(weight, np.float32)
    total = _multiplied(call, "MatMul", int(reach.max(initial=0)), call.read[0], matrix)
    return _biased(call, total, reach, bias)


def mul(call: TranslatedCall) -> Value:
    bound = call.largest(0) * call.largest(1)
    return finished(call, _multiplied(call, "Mul", bound, *call.read), bound)


def _weight_sums(weight: np.ndarray, axes: tuple[int, ...]) -> Int64:
    """By channel, the sum of the weights' magnitudes: it bounds every partial sum of x * w."""
    return np.asarray(np.abs(weight.astype(np.int64)).sum(axis=axes))


def _biased(
    call: TranslatedCall, total: Value, reach: Int64, bias: np.ndarray | None, trailing: int = 0
) -> Value:
    """Adds the bias, in float64 if float32 might not hold the sum."""
    if bias is None:
        return finished(call, total, reach, trailing)
    middle = bias.astype(np.int64)
    column = bias.reshape(*bias.shape, *(1,) * trailing)
    max_value = int((reach + np.abs(middle)).max(initial=0))
    if call.output.dtype == SUMS:
        refuse_inexact(max_value, SINGLE)  # no clamp limits these sums to float32's range
    if max_value <= SINGLE:
        total = call.add("Add", total, call.constant(column, np.float32))
    else:
        wide = call.add("Cast", total, to=FLOAT64)  # of a float64 sum, nothing
        total = call.add("Add", wide, call.constant(column, np.float64))
    return finished(call, total, reach, trailing, middle)


def _summed_in_digits(
    call: TranslatedCall, product: Callable[[Value], Value], weight_sum: int, bias: Int64
) -> Value:
    """`product` of the first input, plus `bias`, in float64.

    `weight_sum` is the largest sum of weight magnitudes behind one result; `bias` broadcasts.
    Raises InexactError where two digits are too few.
    """
    x, largest = call.read[0], call.largest()
    bits = (SINGLE // (weight_sum + 1)).bit_length()  # 2**(bits - 1) (weight_sum + 1) <= SINGLE
    digits = (largest >> bits) + 1, (int(np.abs(bias).max(initial=0)) >> bits) + 1
    refuse_inexact(digits[0] * weight_sum + digits[1], SINGLE)
    # float32 holds the sum with this constant in steps of 2**bits.
    coarse = call.constant(np.ldexp(1.5, [SINGLE_BITS + bits]), np.float32)
    high = call.add("Sub", call.add("Add", x, coarse), coarse)
    low = call.add("Sub", x, high)
    bias_high = np.ldexp(np.rint(np.ldexp(bias.astype(np.float64), -bits)), bits)
    wide = [
        call.add("Cast", call.add("Add", product(part), call.constant(own, np.float32)), to=FLOAT64)
        for part, own in ((high, bias_high), (low, bias - bias_high))
    ]
    return call.add("Add", *wide)


def _multiplied(call: TranslatedCall, op: str, bound: int, *operands: Value) -> Value:
    """The operator MatMul or Mul, whose sums `bound` limits: in float32 if that holds them, else
    in float64. Raises InexactError beyond."""
    if bound <= SINGLE:
        return call.add(op, *operands)
    _refuse_sums(call)
    refuse_inexact(bound, DOUBLE)
    return call.add(op, *(call.add("Cast", operand, to=FLOAT64) for operand in operands))


def _refuse_sums(call: TranslatedCall) -> None:
    """Raises InexactError for int32 sums: steps are float32, and no clamp limits sums to its
    range."""
    if SUMS in (call.output.dtype, *(grid.dtype for grid in call.inputs)):
        raise InexactError
