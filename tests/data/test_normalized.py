"""Normalized samples are taken back to the values they were made from."""

import numpy as np
import pytest

from npumake.data.normalized import raw
from npumake.errors import ProjectError

PIXELS = np.random.default_rng(0).integers(0, 256, (1, 3, 4, 6)).astype(np.float32)
MEAN, SCALE = (123.675, 116.28, 103.53), (0.01712, 0.0175, 0.01743)


def normalized(pixels: np.ndarray, axis: int) -> np.ndarray:
    along = [-1 if index == axis else 1 for index in range(pixels.ndim)]
    mean, scale = (np.asarray(values).reshape(along) for values in (MEAN, SCALE))
    return ((pixels - mean) * scale).astype(np.float32)


def test_pixels_come_back_within_a_ten_thousandth():
    back = raw(normalized(PIXELS, 1), MEAN, SCALE, "NCHW")
    assert (back.dtype, back.shape) == (np.float32, PIXELS.shape)
    np.testing.assert_allclose(back, PIXELS, atol=1e-4)


def test_channels_may_be_last():
    pixels = PIXELS.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(raw(normalized(pixels, 3), MEAN, SCALE, "NHWC"), pixels, atol=1e-4)


def test_one_number_is_for_all_channels():
    np.testing.assert_array_equal(raw(PIXELS * 0.5, 0.0, 0.5, "NCHW"), PIXELS)


@pytest.mark.parametrize(("mean", "scale"), [((1.0, 2.0), 1.0), (0.0, 0.0)])
def test_what_cannot_be_taken_back_is_refused(mean, scale):
    with pytest.raises(ProjectError):
        raw(PIXELS, mean, scale, "NCHW")
