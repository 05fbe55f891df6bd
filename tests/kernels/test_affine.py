import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.kernels.affine import dequantize, other_axes, per_axis, quantize, saturate


def test_halves_go_to_the_even_step():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    assert quantize(x, 1.0, 0, -128, 127).tolist() == [0, 2, 2, 0, -2]


def test_what_lies_outside_saturates():
    x = np.array([-np.inf, -1e30, 1e30, np.inf], np.float32)
    assert quantize(x, 1e-10, 3, -128, 127).tolist() == [-128, -128, 127, 127]
    assert quantize(x, 1.0, 0, -(2**31), 2**31 - 1)[-1] == 2**31 - 1


def test_nan_has_no_place_on_a_grid():
    with pytest.raises(ValueError, match="NaN"):
        quantize(np.array([np.nan], np.float32), 1.0, 0, -128, 127)


def test_the_division_is_in_the_type_of_x():
    x = np.array([0.35], np.float32)
    assert quantize(x, 0.1, 0, -128, 127).item() == np.rint(np.float32(0.35) / np.float32(0.1))
    assert quantize(x.astype(np.float64), 0.1, 0, -128, 127).item() == 3


@examples(50)
@given(st.floats(2.0**-20, 2.0**20, width=32), st.integers(-128, 127))
def test_every_step_survives_a_round_trip(scale, zero_point):
    q = np.arange(-128, 128, dtype=np.int8)
    back = quantize(dequantize(q, scale, zero_point), scale, zero_point, -128, 127)
    assert np.array_equal(back, q)


def test_a_scale_per_channel_lies_along_its_axis():
    q = np.array([[1, 2], [3, 4]], np.uint8)
    scale = per_axis(np.array([1.0, 10.0]), 2, 0)
    zero_point = per_axis(np.array([0, 4], np.uint8), 2, 0)
    assert dequantize(q, scale, zero_point).tolist() == [[1.0, 2.0], [-10.0, 0.0]]
    assert per_axis(np.array([1, 2, 3]), 4, 1).shape == (1, 3, 1, 1)
    assert per_axis(np.array(7), 4, 1).shape == ()
    assert (other_axes(4, 1), other_axes(1, 0)) == ((0, 2, 3), ())


def test_saturate_holds_the_grid():
    assert saturate(np.array([-(2**40), 5, 2**40]), -8, 7).tolist() == [-8, 5, 7]


def test_what_a_scalar_stands_for_is_an_array():
    made = dequantize(np.array(3, np.int8), np.float32(0.5), 1)
    assert isinstance(made, np.ndarray)
    assert made.shape == ()
    assert made == 1.0
