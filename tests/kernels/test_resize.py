import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npumake.kernels.resize import linear, linear_taps, nearest, nearest_indices

MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
RULES = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
EMPTY = np.zeros(0, np.float32)

quick = settings(max_examples=60)
sizes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=2)


def drawn(sizes):
    inputs, outputs = zip(*sizes, strict=True)
    x = np.random.default_rng(0).integers(-128, 128, (1, 2, *inputs))
    ratios = [float(np.float32(o) / np.float32(i)) for i, o in sizes]
    return x, np.array([1, 2, *outputs], np.int64), ratios


@quick
@given(sizes, st.sampled_from(MODES), st.sampled_from(RULES))
def test_nearest_is_that_of_onnxruntime(ort, sizes, mode, rule):
    x, shape, ratios = drawn(sizes)
    attributes = {"mode": "nearest", "coordinate_transformation_mode": mode, "nearest_mode": rule}
    want = ort("Resize", np.float32(x), EMPTY, EMPTY, shape, **attributes)
    indices = [
        nearest_indices(i, o, r, mode, rule) for (i, o), r in zip(sizes, ratios, strict=True)
    ]
    assert np.array_equal(nearest(x, indices), want)


@quick
@given(sizes, st.sampled_from(MODES))
def test_linear_is_close_to_that_of_onnxruntime(ort, sizes, mode):
    x, shape, ratios = drawn(sizes)
    attributes = {"mode": "linear", "coordinate_transformation_mode": mode}
    want = ort("Resize", np.float32(x), EMPTY, EMPTY, shape, **attributes)
    taps = [linear_taps(i, o, r, mode) for (i, o), r in zip(sizes, ratios, strict=True)]
    values, bits = linear(x, taps)
    assert values.dtype == np.int64
    assert np.allclose(values / 2.0**bits, want, rtol=0, atol=0.02)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("factor", [2, 4, 0.5])
def test_a_power_of_two_is_interpolated_exactly(reference, factor, mode):
    x = np.random.default_rng(0).integers(-128, 128, (1, 2, 6, 8))
    scales = np.array([1, 1, factor, factor], np.float32)
    attributes = {"mode": "linear", "coordinate_transformation_mode": mode}
    want = reference("Resize", np.float32(x), EMPTY, scales, **attributes)
    taps = [linear_taps(n, int(n * factor), factor, mode) for n in (6, 8)]
    values, bits = linear(x, taps)
    assert np.array_equal(values, want * 2.0**bits)


def test_two_axes_of_16_bits_fit():
    x = np.full((1, 1, 3, 3), -(2**16))
    values, bits = linear(x, [linear_taps(3, 7, 7 / 3, "half_pixel")] * 2)
    assert np.unique(values).tolist() == [-(2 ** (16 + bits))]


@quick
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_what_is_dropped_makes_no_tie_and_breaks_none(seed, out):
    """The kept bits stand where the exact sum does against every half."""
    x = np.random.default_rng(seed).integers(-(2**15), 2**15, 4)
    taps = linear_taps(4, out, out / 4, "half_pixel")
    (low, high, weight), (values, bits) = taps, linear(x, [taps])
    exact = [int(x[a]) * (2**22 - int(w)) + int(x[b]) * int(w) for a, b, w in zip(*taps)]  # noqa: B905
    assert (len(low), len(high), len(weight)) == (out, out, out)
    for kept, true in zip(values.tolist(), exact, strict=True):
        for unit in (1, 2, 3):
            half = unit << (bits - 2)
            assert (kept > half) - (kept < half) == (true > half << 8) - (true < half << 8)


def test_a_constant_image_stays_constant():
    x = np.full((1, 1, 5, 5), 77)
    values, bits = linear(x, [linear_taps(5, 13, 2.6, "half_pixel")] * 2)
    assert np.unique(values).tolist() == [77 << bits]
