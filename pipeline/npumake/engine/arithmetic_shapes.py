"""Output shapes of arithmetic kernels, and checks of their attributes and constants.

Every function raises MisfitError for an instruction that its kernel does not accept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npumake.engine.call import Call
from npumake.engine.checks import (
    Shape,
    axes,
    axis,
    bounded,
    broadcast,
    constant,
    flag,
    one_of,
    refuse,
    whole,
    within,
)
from npumake.kernels.divide import MAX_EPSILON, MAX_ROW_ELEMENTS
from npumake.kernels.rounding import ROUNDED
from npumake.kernels.table import EXP_BITS


def input_shape(call: Call) -> Shape:
    return call.inputs[0].shape


def elementwise(call: Call) -> Shape:
    return broadcast(*(grid.shape for grid in call.inputs))


def added(call: Call) -> Shape:
    """Two mantissas with one common shift."""
    for role, shape in (("mantissa", (2,)), ("shift", ())):
        refuse(constant(call, role).shape != shape, f"`{role}` is not of {list(shape)}")
    return elementwise(call)


def added_twice(call: Call) -> Shape:
    """One factor per operand and one for the sum."""
    factor_of_each(call, 3)
    whole(call, "headroom", 0, 30)
    whole(call, "sign", -1, 1)
    return elementwise(call)


def quotient(call: Call) -> Shape:
    for role in ("mantissa", "shift"):
        refuse(constant(call, role).shape != (), f"`{role}` is not one number")
    return elementwise(call)


def selection(call: Call) -> Shape:
    factor_of_each(call, len(call.inputs))
    return elementwise(call)


def factor_of_each(call: Call, count: int) -> None:
    for role in ("mantissa", "shift"):
        lengths = constant(call, role, rank=1).shape
        refuse(lengths != (count,), f"`{role}` holds {lengths[0]} numbers, not {count}")


def product(call: Call) -> Shape:
    """Product of two tensors, or of one tensor and a constant `weight`."""
    left, *others = (grid.shape for grid in call.inputs)
    right = others[0] if others else constant(call, "weight").shape
    refuse(not left or not right, "a scalar is not a matrix")
    depth = right[-2] if len(right) > 1 else right[0]
    refuse(left[-1] != depth, f"{list(left)} and {list(right)} have no product")
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    return (*broadcast(left[:-2], right[:-2]), *rows, *columns)


def real_product(call: Call) -> Shape:
    out_shape = product(call)
    within("factor", constant(call, "factor", "f").shape, out_shape)
    return out_shape


def looked_up(call: Call) -> Shape:
    levels = 1 << 8 * np.dtype(call.inputs[0].dtype).itemsize
    table = constant(call, "table", rank=1)
    refuse(table.size != levels, f"`table` has {table.size} entries, not {levels}")
    return input_shape(call)


def quantized(call: Call) -> Shape:
    if "rounding" in call.step.attributes:
        one_of(call, "rounding", ROUNDED)
    return input_shape(call)


def dequantized(call: Call) -> Shape:
    if "scale" in call.step.constants:
        within("scale", constant(call, "scale", "f").shape, input_shape(call))
    return input_shape(call)


def exponentials(call: Call) -> Shape:
    levels = 1 << 8 * np.dtype(call.inputs[0].dtype).itemsize
    table = bounded(call, "exp_table", 0, 1 << EXP_BITS, rank=1)
    refuse(table.size < levels, f"`exp_table` has {table.size} entries, not {levels}")
    refuse(not table[0], "`exp_table` begins with 0")
    return along(call)


def along(call: Call) -> Shape:
    axis(call, len(input_shape(call)))
    return input_shape(call)


def leaky(call: Call) -> Shape:
    slope = constant(call, "slope")
    within("slope", slope.shape, input_shape(call))
    return input_shape(call)


def reduced(call: Call) -> Shape:
    return _over(input_shape(call), axes(call, len(input_shape(call))), flag(call, "keepdims"))


def place(call: Call) -> Shape:
    flag(call, "last")
    return _over(input_shape(call), (axis(call, len(input_shape(call))),), flag(call, "keepdims"))


def _over(shape: Shape, reduced: Sequence[int], keep: bool) -> Shape:
    sizes = ((at, 1 if at in reduced else size) for at, size in enumerate(shape))
    return tuple(size for at, size in sizes if keep or at not in reduced)


def normalized_rows(call: Call) -> Shape:
    shape = input_shape(call)
    count = math.prod(shape[at] for at in axes(call, len(shape)))
    refuse(count > MAX_ROW_ELEMENTS, f"a row of {count} is longer than {MAX_ROW_ELEMENTS}")
    bounded(call, "epsilon", 0, MAX_EPSILON, rank=0)
    for role in ("gain", "offset", "shift"):
        within(role, constant(call, role).shape, shape)
    return shape
