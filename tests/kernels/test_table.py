from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.kernels.table import EXP_BITS, SOFTMAX_BITS, exp_table, lookup, softmax

scales = st.floats(2.0**-12, 16.0)


def test_a_table_is_read_from_the_low_end_of_the_grid():
    table = np.arange(256, dtype=np.int32) ** 2
    q = np.array([[-128, 0], [127, -127]], np.int8)
    assert lookup(q, table, -128).tolist() == [[0, 128**2], [255**2, 1]]
    assert lookup(q.astype(np.int32) + 128, table, 0).tolist() == [[0, 128**2], [255**2, 1]]


@examples(30)
@given(scales)
def test_the_exponentials_are_those_of_mathematics(scale):
    exact = np.exp(-scale * np.arange(256)) * 2**EXP_BITS
    assert np.abs(exp_table(scale) - exact).max() <= 0.5 + 1e-5  # what np.exp itself is off


@pytest.mark.parametrize("scale", [2.0**-12, 1e-4, 3e-4])
def test_the_last_of_65536_exponentials_is_as_right_as_the_first(scale):
    context = Context(prec=50)
    table = exp_table(scale, 1 << 16)
    for d in (0, 1, 9999, 40000, 65535):
        exact = context.multiply(context.exp(context.multiply(Decimal(-scale), d)), 2**EXP_BITS)
        assert table[d] == int(exact.to_integral_value())


def test_a_scale_is_positive():
    with pytest.raises(ValueError, match="positive"):
        exp_table(0.0)


@examples(30)
@given(scales, st.integers(1, 40), st.integers(0, 2**32))
def test_softmax_is_the_nearest_fraction_of_the_table(scale, size, seed):
    q = np.random.default_rng(seed).integers(-128, 128, (2, size, 3)).astype(np.int8)
    table = exp_table(scale)
    got = softmax(q, table, 1)
    powers = table[q.max(axis=1, keepdims=True).astype(int) - q]
    for n, i, m in np.ndindex(q.shape):
        share = Fraction(int(powers[n, i, m]), int(powers[n, :, m].sum()))
        assert abs(int(got[n, i, m]) - share * 2**SOFTMAX_BITS) <= Fraction(1, 2)


def test_softmax_is_close_to_the_float_one():
    q = np.random.default_rng(0).integers(-128, 128, (4, 1000))
    e = np.exp(0.05 * q)
    got = softmax(q, exp_table(0.05), -1) / 2.0**SOFTMAX_BITS
    assert np.abs(got - e / e.sum(axis=-1, keepdims=True)).max() <= 2.0**-24


def test_a_long_axis_does_not_overflow():
    q = np.full((1, 2**16), 127, np.int8)
    assert np.unique(softmax(q, exp_table(0.1), 1)).tolist() == [2 ** (SOFTMAX_BITS - 16)]
