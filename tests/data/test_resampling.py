"""Resizing against OpenCV and against scikit-image's recipe in SciPy."""

import cv2
import numpy as np
import pytest
from scipy import ndimage

from npumake.data import resampling
from npumake.errors import ProjectError

RNG = np.random.default_rng(0)
SIZES = [((20, 30), (7, 9)), ((20, 30), (41, 33)), ((9, 64), (9, 32)), ((5, 7), (1, 1))]


def picture(size: tuple[int, int]) -> np.ndarray:
    return RNG.uniform(0, 255, (*size, 3)).astype(np.float32)


@pytest.mark.parametrize(("size", "to"), SIZES)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(resampling.linear, cv2.INTER_LINEAR), (resampling.cubic, cv2.INTER_CUBIC)],
    ids=["linear", "cubic"],
)
def test_opencv_resizes_the_same(ours, theirs, size, to):
    image = picture(size)
    expected = cv2.resize(image, to[::-1], interpolation=theirs)
    np.testing.assert_allclose(ours(image, to), expected, atol=0.02)


@pytest.mark.parametrize(("size", "to"), SIZES)
@pytest.mark.parametrize("order", range(6))
def test_scikit_image_resizes_the_same(order, size, to):
    """Its recipe: gaussian_filter, then zoom on a grid of pixels, then a clip."""
    image = picture(size)
    factors = np.array([m / n for m, n in zip(size, to, strict=True)])
    smooth = image.astype(np.float64)
    if order:
        sigma = (*np.maximum(0, (factors - 1) / 2), 0)
        smooth = ndimage.gaussian_filter(smooth, sigma, mode="mirror")
    zoomed = ndimage.zoom(smooth, (*1 / factors, 1), order=order, mode="mirror", grid_mode=True)
    expected = np.clip(zoomed, image.min(), image.max())
    np.testing.assert_allclose(resampling.spline(image, to, order), expected, atol=0.02)


@pytest.mark.parametrize("order", range(6))
def test_a_constant_stays_a_constant(order):
    image = np.full((6, 5, 1), 7.0, np.float32)
    np.testing.assert_allclose(resampling.spline(image, (9, 2), order), 7.0, rtol=1e-6)


def test_a_row_of_one_pixel_is_repeated():
    assert resampling.spline(np.full((1, 1, 1), 3.0), (2, 2), 3).tolist() == [[[3.0]] * 2] * 2


def test_more_pixels_than_memory_should_hold_are_refused():
    with pytest.raises(ProjectError, match="too large"):
        resampling.linear(picture((2, 2)), (1 << 14, 1 << 14))
