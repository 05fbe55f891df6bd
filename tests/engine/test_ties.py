"""Ties that a float64 product comes near, against every tie one by one."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.exact import ExactSession
from npumake.engine.reference import ReferenceSession
from npumake.engine.ties import MAX_SHIFT, are_countable, count_near_ties, floats_agree, near_ties
from npumake.kernels.rounding import ROUNDED, FixedPoint, rescale

FIRST, LAST = -(1 << 15), (1 << 15) - 1
ROUNDINGS = ("half_even", "half_up", "half_away")


def by_definition(mantissa, shift, first, last):
    """The k whose tie lies within 2**-52 of the largest code of a product that is not on it."""
    error = ((max(abs(first), abs(last)) + 1) << shift) >> 52
    distances = {k: (2 * k + 1) * (1 << (shift - 1)) % mantissa for k in range(first, last)}
    return [k for k, below in distances.items() if below and min(below, mantissa - below) <= error]


@pytest.mark.parametrize("shift", [1, 30, 40, 44, 48, 55, MAX_SHIFT])
@pytest.mark.parametrize(("first", "last"), [(-128, 127), (0, 255), (-700, 900), (0, 0)])
def test_the_near_ties_are_those_found_one_by_one(shift, first, last):
    rng = np.random.default_rng(shift)
    mantissa = np.array([1, 3, 1 << 30, (1 << 31) - 1, *rng.integers(1 << 30, 1 << 31, 40)])
    counts = count_near_ties(mantissa, np.full_like(mantissa, shift), first, last)
    for m, counted in zip(mantissa.tolist(), counts, strict=True):
        near = by_definition(m, shift, first, last)
        assert near_ties(m, shift, first, last).tolist() == near
        assert counted == len(near)


@pytest.mark.parametrize("shift", [44, 50])
def test_of_many_codes_as_many_are_near_as_are_listed(shift):
    mantissa = np.random.default_rng(shift).integers(1 << 30, 1 << 31, 400)
    counts = count_near_ties(mantissa, np.full_like(mantissa, shift), FIRST, LAST)
    listed = [len(near_ties(int(m), shift, FIRST, LAST)) for m in mantissa]
    assert counts.tolist() == listed
    assert any(listed)


def factor_with_crossed_ties(shift, rule):
    """A factor, and the products' integers on both sides of ties that one of them crosses."""
    rng = np.random.default_rng(0)
    for _ in count():
        mantissa = int(rng.integers(1 << 30, 1 << 31))
        ties = near_ties(mantissa, shift, FIRST, LAST)
        if len(ties) and not floats_agree(mantissa, shift, ties, rule):
            below = [((2 * k + 1) << (shift - 1)) // mantissa for k in ties.tolist()]
            return mantissa, np.array([*below, *(a + 1 for a in below)])


@pytest.mark.parametrize("rule", ROUNDINGS)
def test_a_product_that_crosses_a_tie_is_computed_exactly(rule):
    shift = 44
    mantissa, sums = factor_with_crossed_ties(shift, rule)
    factor = {"mantissa": np.array(mantissa), "shift": np.array(shift)}
    exact = rescale(sums, FixedPoint(**factor), rule)
    assert (ROUNDED[rule](sums * np.ldexp(float(mantissa), -shift)) != exact).any()
    weight = np.eye(len(sums), dtype=np.int8)
    constants = {"weight": weight, "bias": sums.astype(np.int32), **factor}
    limits = {"low": FIRST, "high": LAST, "rounding": rule}
    step = Instruction("matmul", "matmul", ("x",), ("y",), constants, limits)
    grid = Tensor((1, len(sums)), "int16", 1.0, 0)
    program = Program(("x",), ("y",), {"x": grid, "y": grid}, (step,))
    session, feeds = ExactSession(program), {"x": np.zeros((1, len(sums)), np.int16)}
    (ours,), (theirs,) = session.run(None, feeds), ReferenceSession(program).run(None, feeds)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours[0], exact)
    assert session.in_floats == (True,)


def test_a_factor_or_a_range_beyond_int64_is_not_counted():
    mantissa, shift = np.array([1 << 30]), np.array([40])
    assert are_countable(mantissa, shift, FIRST, LAST)
    assert not are_countable(-mantissa, shift, FIRST, LAST)
    assert not are_countable(mantissa, shift - 40, FIRST, LAST)
    assert not are_countable(mantissa, shift + 23, FIRST, LAST)
    assert not are_countable(mantissa, shift, -(1 << 31), (1 << 31) - 1)
