import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from npumake.kernels.pool import counts, max_pool, pool_pads, sum_pool

geometries = st.lists(
    # size, kernel, begin, end, stride, dilation along one axis
    st.tuples(
        st.integers(3, 8),
        st.integers(1, 3),
        st.integers(0, 1),
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=3,
)
quick = settings(max_examples=40)


def laid_out(axes):
    sizes, kernel, begins, ends, strides, dilations = zip(*axes, strict=True)
    for k, b, e in zip(kernel, begins, ends, strict=True):
        assume(b < k and e < k)  # onnxruntime refuses more
    for n, k, b, e, d in zip(sizes, kernel, begins, ends, dilations, strict=True):
        assume(n + b + e >= (k - 1) * d + 1)
    return sizes, kernel, (*begins, *ends), strides, dilations


def integers(sizes, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, (2, 3, *sizes))


@quick
@given(geometries, st.booleans())
def test_max_pool_is_that_of_onnxruntime(ort, axes, ceil_mode):
    sizes, kernel, pads, strides, dilations = laid_out(axes)
    x = integers(sizes)
    attributes = {"pads": pads, "strides": strides, "dilations": dilations}
    want = ort("MaxPool", np.float32(x), kernel_shape=kernel, ceil_mode=ceil_mode, **attributes)
    effective = pool_pads(sizes, kernel, pads, strides, dilations, ceil_mode)
    got = max_pool(x.astype(np.int8), kernel, effective, strides, dilations, -128)
    assert got.dtype == np.int8
    assert np.array_equal(got, want)


@quick
@given(geometries, st.booleans(), st.booleans())
def test_sum_over_count_is_the_average_of_onnxruntime(ort, axes, ceil_mode, include_pad):
    sizes, kernel, pads, strides, dilations = laid_out(axes)
    x = integers(sizes)
    want = ort(
        "AveragePool",
        np.float32(x),
        kernel_shape=kernel,
        pads=pads,
        strides=strides,
        dilations=dilations,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(include_pad),
    )
    geometry = (kernel, pool_pads(sizes, kernel, pads, strides, dilations, ceil_mode))
    sums = sum_pool(x, *geometry, strides, dilations)
    counted = pads if include_pad else (0,) * len(pads)
    count = counts(sizes, *geometry, strides, dilations, counted)
    assert sums.dtype == count.dtype == np.int64
    assert np.allclose(sums / np.maximum(count, 1), want, rtol=0, atol=1e-4)


def test_a_global_pool_is_the_sum_of_everything():
    x = integers((7, 5))
    got = sum_pool(x, (7, 5), (0, 0, 0, 0), (1, 1), (1, 1))
    assert np.array_equal(got, x.sum(axis=(2, 3), keepdims=True))


def test_a_ceil_mode_window_does_not_start_in_the_end_padding():
    assert pool_pads((4,), (1,), (0, 0), (2,), (1,), True) == (0, 0)
    assert pool_pads((4,), (3,), (0, 0), (2,), (1,), True) == (0, 1)
    assert pool_pads((2,), (2,), (1, 1), (3,), (1,), True) == (1, 0)


def test_padding_is_counted_only_where_declared():
    ceil = pool_pads((4,), (3,), (1, 1), (2,), (1,), True)
    assert ceil == (1, 2)
    assert counts((4,), (3,), ceil, (2,), (1,), (1, 1)).tolist() == [3, 3, 2]
    assert counts((4,), (3,), ceil, (2,), (1,), (0, 0)).tolist() == [2, 3, 1]


def test_a_window_larger_than_its_input_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        max_pool(integers((2, 2)), (3, 3), (0, 0, 0, 0), (1, 1), (1, 1), -128)
    with pytest.raises(ValueError, match="negative padding"):
        sum_pool(integers((2, 2)), (1, 1), (0, 0, -1, 0), (1, 1), (1, 1))
