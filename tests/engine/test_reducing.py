"""Sums, extremes, quotients and rows normalized: the instructions against whole numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from draws import examples
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.reference import ReferenceSession
from npumake.kernels.rounding import fixed_point

SHAPE = (2, 3, 4)
MADE = (2, 1, 4)
ZERO = {"uint8": 128, "int8": -3, "int16": 0}
blocks = st.sampled_from(["uint8", "int8", "int16"]).flatmap(
    lambda dtype: arrays.arrays(dtype, SHAPE, elements=arrays.from_dtype(np.dtype(dtype)))
)
factors = st.floats(2.0**-12, 2.0)


def executed(op, read, constants, attributes, shape=MADE, dtype="int16", scale=1.0):
    """One instruction on these codes, its result within int16 and around zero."""
    names = tuple(f"x{index}" for index in range(len(read)))
    fed = dict(zip(names, read, strict=True))
    tensors = {n: Tensor(x.shape, str(x.dtype), 1.0, ZERO[str(x.dtype)]) for n, x in fed.items()}
    said = {"low": -32768, "high": 32767, "rounding": "half_even", **attributes}
    step = Instruction(op, "step", names, ("y",), constants, said)
    program = Program(names, ("y",), tensors | {"y": Tensor(shape, dtype, scale, 0)}, (step,))
    (made,) = ReferenceSession(program).run(None, fed)
    return made


def held(values):
    """Rounded half to even, within int16."""
    return [min(max(round(value), -32768), 32767) for value in values]


def steps(codes):
    return [int(code) - ZERO[str(codes.dtype)] for code in codes.ravel()]


def columns(codes):
    """What is reduced over axis 1, in whole numbers."""
    return np.array(steps(codes), object).reshape(SHAPE).transpose(0, 2, 1).reshape(-1, 3).tolist()


@pytest.mark.parametrize(
    ("op", "reduced"), [("sum", sum), ("mean", sum), ("max", max), ("min", min)]
)
@examples(60)
@given(codes=blocks, real=factors)
def test_a_reduction_is_exact_and_rounded_once(op, reduced, codes, real):
    m = fixed_point(real)
    made = executed(
        op, [codes], {"mantissa": m.mantissa, "shift": m.shift}, {"axes": [1], "keepdims": True}
    )
    unit = Fraction(int(m.mantissa)) / Fraction(2) ** int(m.shift)
    assert made.ravel().tolist() == held(reduced(column) * unit for column in columns(codes))


@pytest.mark.parametrize(("op", "chosen"), [("maximum", max), ("minimum", min)])
@examples(60)
@given(left=blocks, right=blocks, reals=st.tuples(factors, factors))
def test_a_selection_is_exact_and_rounded_once(op, chosen, left, right, reals):
    m = fixed_point(np.array(reals))
    made = executed(op, [left, right], {"mantissa": m.mantissa, "shift": m.shift}, {}, SHAPE)
    first, second = (
        Fraction(int(mantissa)) / Fraction(2) ** int(shift)
        for mantissa, shift in zip(m.mantissa, m.shift, strict=True)
    )
    pairs = zip(steps(left), steps(right), strict=True)
    assert made.ravel().tolist() == held(chosen(a * first, b * second) for a, b in pairs)


@examples(60)
@given(codes=blocks, last=st.booleans())
def test_a_place_is_that_of_the_first_or_last_of_the_largest_or_least(codes, last):
    asked = {"axis": 1, "keepdims": True, "last": last}
    for op, sign in (("arg_max", 1), ("arg_min", -1)):
        made = executed(op, [codes], {}, asked, dtype="int64", scale=None)
        want = [
            max(range(3), key=lambda i, c=c, sign=sign: (sign * c[i], i if last else -i))
            for c in columns(codes)
        ]
        assert made.ravel().tolist() == want


@examples(60)
@given(above=blocks, below=blocks, real=factors)
def test_a_quotient_is_exact_and_rounded_once(above, below, real):
    m = fixed_point(real)
    made = executed("div", [above, below], {"mantissa": m.mantissa, "shift": m.shift}, {}, SHAPE)
    unit = Fraction(int(m.mantissa)) / Fraction(2) ** int(m.shift)
    pairs = zip(steps(above), steps(below), strict=True)
    want = held(a * unit / b if b else math.copysign(1 << 40, a) * bool(a) for a, b in pairs)
    assert made.ravel().tolist() == want
