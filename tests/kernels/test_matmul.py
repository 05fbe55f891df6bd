import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.kernels.matmul import exact_float, matmul

SHAPES = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4,))]
SHAPES += [((4,), (4, 3)), ((2, 3, 4), (4,))]


@examples(60)
@given(st.sampled_from(SHAPES), st.integers(1, 22), st.integers(0, 2**32))
def test_matmul_is_exact(shapes, bits, seed):
    draw = np.random.default_rng(seed)
    a, b = (draw.integers(-(2**bits), 2**bits, shape) for shape in shapes)
    got = matmul(a, b)
    assert got.dtype == np.int64
    assert np.array_equal(got, a @ b)


def test_the_narrowest_int8_does_not_wrap():
    a = np.full((1, 1000), -128, np.int8)
    assert matmul(a, a.T).item() == 128 * 128 * 1000


def test_float32_carries_up_to_two_to_the_24():
    one = np.ones((1, 1), np.int64)
    assert exact_float(one, one << 24, 0) is np.float32
    assert exact_float(one, (one << 24) + 1, 0) is np.float64
    with pytest.raises(OverflowError, match="beyond"):
        exact_float(one, (one << 53) + 1, 0)
