"""Grids: zero is a code, and nothing in range is further than half a step from one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.kernels import affine
from npumake.quant.precision.grids import (
    MAX_BIAS,
    MAX_DEAD_SCALE_RATIO,
    activation_grid,
    constant_grid,
    image_grid,
    weight_grid,
)
from npumake.targets.target import Activations, WeightGrid

SCHEMES = [Activations(d, symmetric) for d in ("int8", "uint8") for symmetric in (True, False)]
every_scheme = pytest.mark.parametrize(
    "scheme", SCHEMES, ids=[f"{s.dtype}{' symmetric' * s.symmetric}" for s in SCHEMES]
)
PER_CHANNEL, PER_TENSOR = WeightGrid("int8", True), WeightGrid("int8", False)
FREE = np.zeros(2)  # no bias asks for a smallest scale


def back(x, grid):
    """x to codes and back."""
    limits = np.iinfo(grid.zero_point.dtype)
    codes = affine.quantize(
        np.asarray(x, np.float32), grid.scale, grid.zero_point, limits.min, limits.max
    )
    return affine.dequantize(codes, grid.scale, grid.zero_point)


@pytest.mark.parametrize(
    ("dtype", "symmetric", "low", "high", "scale", "zero_point"),
    [
        ("int8", True, -1.0, 2.54, 0.02, 0),
        ("uint8", True, -2.55, 1.0, 0.02, 128),
        ("int8", False, -1.0, 1.55, 0.01, -28),
        ("uint8", False, -1.0, 1.55, 0.01, 100),
        ("uint8", False, 1.0, 2.55, 0.01, 0),  # zero is in range though no value is
        ("int8", False, -2.55, -1.0, 0.01, 127),
        ("int8", False, -1.0, 1.0, 1 / 127, 0),  # 255 steps have no middle
        ("uint8", False, -1.0, 1.0, 1 / 127, 128),
        ("int8", False, -1.5, 253.5, 253.5 / 253, -126),
        ("int8", False, 0.0, 0.0, 1.0, 0),
        ("uint8", True, 0.0, 0.0, 1.0, 128),
        ("int8", False, -(2.0**-120), 2.0**-120, 1.0, 0),  # too small for a float32 scale
    ],
)
def test_the_grid_of_a_range(dtype, symmetric, low, high, scale, zero_point):
    grid = activation_grid(low, high, Activations(dtype, symmetric))
    assert grid.scale == np.float32(scale)
    assert grid.zero_point == zero_point
    assert (grid.scale.dtype, grid.zero_point.dtype) == (np.float32, dtype)
    assert grid.scale.shape == grid.zero_point.shape == ()


spans = st.tuples(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30)).map(sorted)


@every_scheme
@given(spans, st.floats(0, 1))
def test_a_value_in_range_is_half_a_step_from_a_code_and_zero_is_one(scheme, span, share):
    low, high = span
    grid = activation_grid(low, high, scheme)
    x = np.float32(low + share * (high - low))
    assert back(0.0, grid) == 0
    assert abs(float(back(x, grid)) - float(x)) <= float(grid.scale) * 0.50002
    assert np.isfinite(grid.scale)
    assert grid.scale >= np.finfo(np.float32).tiny


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("mean", [0, 100, 127.5, 128])
def test_pixels_fed_as_reals_do_not_fall_halfway_between_two_codes(dtype, mean):
    x = (np.arange(256) - mean) / 127.5
    grid = activation_grid(x.min(), x.max(), Activations(dtype, symmetric=False))
    steps = (back(x, grid) - x) / grid.scale
    assert np.mean(steps**2) <= 1.1 / 12  # as of values that fall anywhere


@every_scheme
def test_every_pixel_is_a_code(scheme):
    pixels = np.arange(256) - 128
    assert np.array_equal(back(pixels, image_grid(scheme)), pixels)


@every_scheme
def test_a_constant_spans_its_own_grid(scheme):
    values = np.array([-0.2, 0.9], np.float32)
    grid = constant_grid(values, scheme)
    assert np.abs(back(values, grid) - values).max() <= grid.scale / 2


def test_each_channel_of_a_weight_has_a_scale_of_its_own():
    weight = np.array([[1.0, -2.54], [0.5, 1.27]], np.float32)
    assert weight_grid(weight, 0, PER_CHANNEL, FREE).scale.tolist() == pytest.approx([0.02, 0.01])
    assert weight_grid(weight, 1, PER_CHANNEL, FREE).scale.tolist() == pytest.approx(
        [1 / 127, 0.02]
    )
    assert weight_grid(weight, 0, PER_TENSOR, FREE).scale.tolist() == pytest.approx([0.02, 0.02])


def test_a_weight_is_symmetric_and_uses_its_whole_grid():
    weight = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    grid = weight_grid(weight, 0, PER_CHANNEL, FREE)
    codes = np.rint(weight / grid.scale[:, None])
    assert np.abs(codes).max(axis=1).tolist() == [127, 127]
    assert not grid.zero_point.any()


def test_a_channel_of_zeros_has_scale_one_or_one_near_the_others_and_a_bias_has_one_that_holds_it():
    weight = np.zeros((2, 3), np.float32)
    bias, s_x = np.array([0.0, 5.0]), 0.01
    scale = weight_grid(weight, 0, PER_CHANNEL, bias / (s_x * MAX_BIAS)).scale
    assert scale[0] <= MAX_DEAD_SCALE_RATIO * scale[1]
    assert weight_grid(np.zeros((2, 3)), 0, PER_CHANNEL, np.zeros(2)).scale.tolist() == [1, 1]
    assert np.isclose(5.0 / (s_x * scale[1]), MAX_BIAS, rtol=1e-6)
