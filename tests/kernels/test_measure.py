import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from draws import examples
from npumake.kernels.measure import (
    Agreement,
    agreement,
    agreements,
    alignments,
    chebyshev,
    cosine,
    l1,
    l2,
    mre,
    mse,
    sqnr_db,
)

elements = st.floats(-1e3, 1e3, width=32, allow_subnormal=False)
pairs = arrays.arrays(np.float32, st.tuples(st.just(2), st.integers(1, 50)), elements=elements)


@examples(60)
@given(pairs)
def test_the_measures_are_their_formulas(pair):
    a, b = pair.astype(np.float64)
    error = a - b
    assert mse(a, b) == pytest.approx(np.mean(error**2), rel=1e-12)
    assert l1(a, b) == pytest.approx(np.abs(error).sum(), rel=1e-12)
    assert l2(a, b) == pytest.approx(np.linalg.norm(error), rel=1e-12)
    assert chebyshev(a, b) == np.abs(error).max()
    if a.any():
        assert mre(a, b) == pytest.approx(np.abs(error).sum() / np.abs(a).sum(), rel=1e-12)
    assert -1.0 <= cosine(a, b) <= 1.0
    if a.any() and b.any():
        want = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        assert cosine(a, b) == pytest.approx(want, rel=1e-12, abs=1e-12)


@examples(60)
@given(pairs)
def test_a_tensor_agrees_with_itself(pair):
    a = pair[0]
    assert cosine(a, a) == 1.0
    assert (mse(a, a), l1(a, a), l2(a, a), chebyshev(a, a)) == (0.0, 0.0, 0.0, 0.0)
    assert sqnr_db(a, a) == math.inf


def test_several_tensors_are_measured_as_each_alone():
    a, b, c = np.random.default_rng(0).normal(size=(3, 20_000)).astype(np.float32)
    assert agreements(a, (b, c)) == [agreement(a, b), agreement(a, c)]


@examples(60)
@given(pairs, st.integers(0, 50))
def test_the_sums_of_two_parts_are_those_of_the_whole(pair, cut):
    a, b = pair
    both = agreement(a[:cut], b[:cut]) + agreement(a[cut:], b[cut:])
    whole = agreement(a, b)
    assert both.count == whole.count
    assert both.chebyshev == whole.chebyshev
    assert both.mse == pytest.approx(whole.mse, rel=1e-12)
    assert both.cosine == pytest.approx(whole.cosine, rel=1e-12, abs=1e-12)


@examples(60)
@given(pairs)
def test_an_alignment_has_the_cosine_of_the_agreement(pair):
    a, b = pair
    to_itself, to_b = alignments(a, (a, b))
    assert (to_itself.cosine, to_b.cosine) == (cosine(a, a), cosine(a, b))


def test_zero_tensors_agree_with_each_other_and_with_nothing_else():
    zero, one = np.zeros(3), np.ones(3)
    assert cosine(zero, zero) == 1.0
    assert cosine(zero, one) == cosine(one, zero) == 0.0
    assert sqnr_db(zero, one) == -math.inf
    assert sqnr_db(10 * one, 9 * one) == pytest.approx(20.0, abs=1e-12)


def test_nothing_is_where_a_sum_starts():
    a = agreement(np.arange(3), np.arange(3)[::-1])
    assert Agreement() + a == a + Agreement() == a
    assert Agreement().mse == 0.0


def test_a_nan_is_not_lost():
    bad = agreement(np.array([np.nan]), np.array([1.0]))
    good = agreement(np.array([2.0]), np.array([1.0]))
    assert math.isnan((bad + good).chebyshev)
    assert math.isnan((good + bad).chebyshev)


def test_the_layout_in_memory_changes_no_bit():
    a, b = np.random.default_rng(0).standard_normal((2, 40, 50))
    assert agreement(np.asfortranarray(a), b) == agreement(a, np.asfortranarray(b))


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shapes differ"):
        agreement(np.zeros(3), np.zeros((3, 1)))
