import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.kernels.divide import (
    MAX_EPSILON,
    MAX_ROW_ELEMENTS,
    SATURATING_QUOTIENT,
    divide,
    isqrt,
    normalized,
)
from npumake.kernels.rounding import fixed_point

codes = st.integers(-65535, 65535)
factors = st.floats(2.0**-70, 2.0**40)
rules = st.sampled_from(["half_even", "half_up", "half_away"])
HALF = {
    "half_even": round,
    "half_up": lambda x: math.floor(x + Fraction(1, 2)),
    "half_away": lambda x: int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x)),
}


@examples(300)
@given(codes, codes.filter(bool), factors, rules)
def test_a_quotient_is_rounded_once(a, b, real, rule):
    factor = fixed_point(real)
    meant = Fraction(a, b) * int(factor.mantissa) / Fraction(2) ** int(factor.shift)
    made = int(divide(np.array([a]), np.array([b]), factor, rule)[0])
    assert made == HALF[rule](meant) or min(abs(made), abs(meant)) > 1 << 17  # both saturate
    assert made * a * b >= 0


@pytest.mark.parametrize("rule", HALF)
def test_half_is_a_tie(rule):
    a, two = np.arange(-7, 8, 2), np.array(2)
    assert divide(a, two, fixed_point(1.0), rule).tolist() == [
        HALF[rule](Fraction(int(x), 2)) for x in a
    ]


def test_by_zero_is_beyond_the_grid_and_zero_by_zero_is_zero():
    made = divide(np.array([3, 0, -3]), np.array(0), fixed_point(1.0), "half_even")
    assert made.tolist() == [SATURATING_QUOTIENT, 0, -SATURATING_QUOTIENT]


@examples(300)
@given(st.integers(0, (1 << 62) - 1))
def test_a_root_is_that_of_whole_numbers(value):
    around = [v for v in (math.isqrt(value) ** 2 - 1, math.isqrt(value) ** 2, value) if v >= 0]
    assert isqrt(np.array(around)).tolist() == [math.isqrt(v) for v in around]


def oracle(row, epsilon):
    """The same in whole numbers of any size."""
    n, total = len(row), sum(row)
    under = max(n * sum(a * a for a in row) - total * total + epsilon, 1)
    shift = (62 - math.frexp(float(under))[1]) // 2
    root = math.isqrt(under << 2 * shift)
    return [(((n * a - total) << shift + 20) + root // 2) // root for a in row]


rows = st.one_of(
    st.lists(codes, min_size=1, max_size=40),
    st.lists(st.integers(-255, 255), min_size=1, max_size=40),
    st.tuples(codes, codes, st.just(MAX_ROW_ELEMENTS // 2)).map(lambda t: [t[0], t[1]] * t[2]),
)
epsilons = st.sampled_from([0, 1, 1000, 1 << 40, MAX_EPSILON])


@examples(150)
@given(rows, epsilons)
def test_a_row_is_normalized_as_whole_numbers_are(row, epsilon):
    made = normalized(np.array([row]), (1,), np.array(epsilon))
    assert made.tolist() == [oracle(row, epsilon)]


@examples(150)
@given(st.lists(codes, min_size=2, max_size=40), epsilons)
def test_a_normalized_row_is_within_its_unit_of_the_quotient(row, epsilon):
    x, n = np.array(row, np.float64), len(row)
    under = n * (x * x).sum() - x.sum() ** 2 + epsilon
    meant = (n * x - x.sum()) / math.sqrt(max(under, 1))
    made = normalized(np.array(row), (0,), np.array(epsilon)) / 2**20
    assert np.abs(made - meant).max() <= 2**-20


def test_a_row_of_one_value_is_zero():
    assert not normalized(np.full((2, 5), 7), (1,), np.array(0)).any()
