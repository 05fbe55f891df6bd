from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.kernels.rounding import (
    FixedPoint,
    Rounding,
    fixed_point,
    fixed_point_common,
    rescale,
    shift_right,
)

quick = examples(150)
rules = st.sampled_from(["half_even", "half_up", "half_away"])
narrow = st.integers(-(2**31) + 1, 2**31 - 1)
wide = st.integers(-(2**46) + 1, 2**46 - 1)
factors = st.floats(-(2.0**13), 2.0**13, allow_subnormal=False)


def rounded(x: Fraction, rule: Rounding) -> int:
    if rule == "half_even":
        return round(x)
    if rule == "half_up":
        return floor(x + Fraction(1, 2))
    return floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def value(factor: FixedPoint) -> Fraction:
    return Fraction(int(factor.mantissa)) * Fraction(2) ** -int(factor.shift)


@quick
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_fixed_point_is_the_nearest_with_31_bits(factor):
    held = fixed_point(factor)
    assert abs(int(held.mantissa)) < 2**31
    assert abs(value(held) - Fraction(factor)) <= abs(Fraction(factor)) / 2**31
    assert held.mantissa == 0 or abs(int(held.mantissa)) >= 2**30


def test_a_mantissa_that_rounds_to_two_to_the_31_carries():
    held = fixed_point(np.nextafter(1.0, 0.0))
    assert value(held) == 1


def test_zero_is_allowed_and_infinity_is_not():
    assert rescale(np.array([5, 2**40]), fixed_point(0.0), "half_up").tolist() == [0, 0]
    with pytest.raises(ValueError, match="finite"):
        fixed_point(np.inf)


@quick
@given(narrow, factors, rules)
def test_rescale_is_exact(a, factor, rule):
    held = fixed_point(factor)
    assert rescale(np.array(a), held, rule) == rounded(a * value(held), rule)


@quick
@given(st.integers(-(2**21) + 1, 2**21 - 1), st.floats(-(2.0**31), 2.0**31), rules)
def test_rescale_is_exact_in_float(a, factor, rule):
    held = fixed_point(factor)
    assert rescale(np.array(a, np.float32), held, rule) == rounded(a * value(held), rule)


@quick
@given(wide, factors, rules)
def test_rescale_is_exact_for_wide_accumulators(a, factor, rule):
    held = fixed_point(factor)
    assert rescale(np.array(a), held, rule) == rounded(a * value(held), rule)


@quick
@given(st.integers(2**30, 2**31 - 1), st.integers(34, 46), st.integers(-3, 3), rules)
def test_a_product_beside_a_half_is_rounded_by_its_last_bit(mantissa, shift, beside, rule):
    """Float64 alone would see the half itself."""
    mantissa |= 1
    a = (2 ** (shift - 1) + beside) * pow(mantissa, -1, 2**shift) % 2**shift
    assert (a * mantissa - 2 ** (shift - 1) - beside) % 2**shift == 0
    held = FixedPoint(np.array(mantissa), np.array(shift))
    for signed in (a, -a):
        each = np.array([signed, 5, -(2**30)])
        expected = [rounded(int(x) * value(held), rule) for x in each]
        assert rescale(each, held, rule).tolist() == expected


@quick
@given(st.integers(-(2**14), 2**14), st.integers(0, 29), rules)
def test_ties_go_where_the_rule_says(a, bits, rule):
    odd = (2 * a + 1) << bits
    held = fixed_point(2.0 ** -(bits + 1))
    assert rescale(np.array(odd), held, rule) == rounded(Fraction(2 * a + 1, 2), rule)


@quick
@given(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 80), rules)
def test_any_shift_right_is_exact(product, shift, rule):
    got = shift_right(np.array(product), np.array(shift), rule)
    assert got == rounded(Fraction(product, 2**shift), rule)


@quick
@given(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(1, 80), rules)
def test_a_shift_left_is_exact_or_saturates(product, left, rule):
    got = int(shift_right(np.array(product), np.array(-left), rule))
    exact = product << left
    assert got == exact or (abs(exact) >= 2**62 and abs(got) >= 2**62 and got * exact > 0)


def test_a_factor_per_channel_broadcasts():
    a = np.arange(24).reshape(2, 3, 4) * 1001
    held = fixed_point(np.array([0.25, 3.0, 1e-3]).reshape(1, 3, 1))
    each = [rescale(a[:, [c]], fixed_point(f), "half_up") for c, f in enumerate((0.25, 3.0, 1e-3))]
    assert np.array_equal(rescale(a, held, "half_up"), np.concatenate(each, axis=1))


def test_narrow_and_wide_accumulators_agree():
    a = np.random.default_rng(0).integers(-(2**31) + 1, 2**31, 1000)
    beside = np.append(a, 2**45)  # takes the wide way
    for rule in ("half_even", "half_up", "half_away"):
        held = fixed_point(np.pi / 2**20)
        assert np.array_equal(rescale(a, held, rule), rescale(beside, held, rule)[:-1])


def test_an_accumulator_that_is_too_wide_is_refused():
    with pytest.raises(OverflowError, match="too wide"):
        rescale(np.array(2**46), fixed_point(0.5), "half_up")


@quick
@given(st.lists(st.integers(-(2**30), 2**30), min_size=2, max_size=2), st.data(), rules)
def test_a_sum_of_products_is_rounded_once(terms, data, rule):
    real = data.draw(st.lists(st.floats(-4, 4, allow_subnormal=False), min_size=2, max_size=2))
    held = fixed_point_common(np.array(real))
    scale = Fraction(2) ** -int(held.shift)
    exact = [int(m) * scale for m in held.mantissa]
    largest = max(abs(Fraction(r)) for r in real)
    assert all(abs(e - Fraction(r)) <= largest / 2**31 for e, r in zip(exact, real, strict=True))
    product = (np.array(terms) * held.mantissa).sum()
    want = rounded(sum((t * e for t, e in zip(terms, exact, strict=True)), Fraction(0)), rule)
    assert shift_right(np.asarray(product), held.shift, rule) == want


def test_twice_rounds_half_up_at_31_bits_and_then_half_away():
    """round(round(a * 2**-1) * 2**-2): -5 → -2.5 → -2 → -0.5 → -1, where once gives -1 (-0.625)."""
    factor = FixedPoint(np.array(1 << 30), np.array(33))
    codes = rescale(np.array([-5, -4, -3, 3, 4, 5, 0]), factor, "twice")
    assert codes.tolist() == [-1, -1, 0, 1, 1, 1, 0]
