"""Images without a header, against OpenCV."""

import cv2
import numpy as np
import pytest

from npumake.data.raw_images import PACKED, from_raw, of_ten_bits, shrunk, ten_bits, to_raw
from npumake.errors import ProjectError

RNG = np.random.default_rng(0)
SMOOTH = cv2.GaussianBlur(RNG.integers(0, 256, (48, 64, 3), np.uint8), (0, 0), 1.5)
NOISY = RNG.integers(0, 256, (48, 64, 3), np.uint8)


def opencv_semiplanar(rgb):
    """(Y, then (U, V) of half the size), as the tool computes it with OpenCV."""
    yuv = cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV)
    half = (rgb.shape[1] // 2, rgb.shape[0] // 2)
    small = cv2.resize(cv2.GaussianBlur(yuv, (0, 0), 0.5, 0.5), half, interpolation=cv2.INTER_AREA)
    return yuv[..., 0], small[..., 1:]


def opencv_shrunk(image, size):
    factor = max(image.shape[0] / size[0], image.shape[1] / size[1])
    if factor > 1:
        image = cv2.GaussianBlur(image, (0, 0), (factor - 1) / 2, (factor - 1) / 2)
    return cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)


def off(made, expected):
    return int(np.abs(np.asarray(made, int) - np.asarray(expected, int)).max())


@pytest.mark.parametrize("size", [(24, 32), (31, 17), (48, 64), (96, 128), (70, 20), (1, 1)])
@pytest.mark.parametrize("image", [SMOOTH, NOISY], ids=["smooth", "noisy"])
def test_a_resized_image_is_opencvs_within_one_code(image, size):
    assert off(shrunk(image, size), opencv_shrunk(image, size)) <= 1


@pytest.mark.parametrize("image", [SMOOTH, NOISY], ids=["smooth", "noisy"])
def test_nv12_is_opencvs_within_one_code(image):
    y, uv = opencv_semiplanar(image)
    expected = np.concatenate([y.reshape(-1), uv.reshape(-1)])
    assert off(np.frombuffer(to_raw(image, "nv12"), np.uint8), expected) <= 1
    swapped = np.concatenate([y.reshape(-1), uv[..., ::-1].reshape(-1)])
    assert off(np.frombuffer(to_raw(image, "nv21"), np.uint8), swapped) <= 1


@pytest.mark.parametrize("form", ["nv12", "nv21"])
def test_nv12_becomes_opencvs_colors(form):
    data = to_raw(NOISY, form)
    y, uv = np.split(np.frombuffer(data, np.uint8), [48 * 64])
    half = uv.reshape(24, 32, 2)[..., :: 1 if form == "nv12" else -1]
    up = [cv2.resize(half[..., n].copy(), (64, 48), interpolation=cv2.INTER_CUBIC) for n in (0, 1)]
    yuv = cv2.merge([y.reshape(48, 64), *up])
    expected = cv2.cvtColor(yuv, cv2.COLOR_YUV2RGB)
    # One code of U, where the two cubics round differently, is 2.03 of blue.
    assert off(from_raw(data, form, (48, 64), "uint8", (1, 0)), expected) <= 3


@pytest.mark.parametrize("form", ["rgb", "bgr", "rgbp", "bgra"])
def test_interleaved_and_planar_colors_come_back_as_they_were(form):
    data = to_raw(NOISY, form)
    np.testing.assert_array_equal(from_raw(data, form, (48, 64), "uint8", (1, 0)), NOISY)


def test_where_the_bytes_of_each_form_are():
    pixels = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)
    made = {form: list(to_raw(pixels, form)) for form in ("rgb", "bgr", "rgbp", "bgra")}
    assert made == {
        "rgb": [1, 2, 3, 4, 5, 6],
        "bgr": [3, 2, 1, 6, 5, 4],
        "rgbp": [1, 4, 2, 5, 3, 6],
        "bgra": [3, 2, 1, 255, 6, 5, 4, 255],
    }


def test_four_values_of_ten_bits_are_five_bytes_the_lowest_bits_first():
    assert ten_bits(np.array([255, 0, 0, 1], np.uint8)).tolist() == [[252, 3, 0, 0, 1]]
    values = RNG.integers(0, 256, 64, np.uint8)
    np.testing.assert_array_equal(of_ten_bits(ten_bits(values).reshape(-1)), values)


def test_nv15_is_nv12_of_ten_bits():
    nv12 = from_raw(to_raw(NOISY, "nv12"), "nv12", (48, 64), "uint8", (1, 0))
    nv15 = from_raw(to_raw(NOISY, "nv15"), "nv15", (48, 64), "uint10", (1, 0))
    np.testing.assert_array_equal(nv15, nv12)


def test_scale_and_bias_are_applied_to_what_is_read():
    values = (NOISY.astype(np.float32) - 127.5) / 128
    made = from_raw(values.tobytes(), "rgb", (48, 64), "float32", (128, 127.5 / 128))
    np.testing.assert_array_equal(made, NOISY)


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda: to_raw(NOISY, "nv13"), "unknown format `nv13`"),
        (lambda: to_raw(NOISY[:47], "nv12"), "needs an even size, not 64x47"),
        (lambda: to_raw(NOISY[:2, :2], "nv15"), "6 values do not fill groups of 4"),
        (lambda: to_raw(NOISY, "rgb", (1 << 20, 1 << 20)), "too large"),
        (lambda: from_raw(bytes(10), "rgb", (2, 2), "uint8", (1, 0)), "10 values of uint8 are no"),
        (lambda: from_raw(bytes(9), "nv12", (3, 2), "uint8", (1, 0)), "an even size, not 2x3"),
        (lambda: from_raw(bytes(9), "rgb", (3, 1), "float32", (1, 0)), "not values of float32"),
        (lambda: from_raw(bytes(9), "nv15", (3, 2), "uint10", (1, 0)), "not groups of 5"),
        (lambda: from_raw(b"\xff" * 12, "gray", (1, 3), "float32", (1, 0)), "NaN"),
        (lambda: from_raw(bytes(12), "rgb", (2, 2), "uint16", (1, 0)), "unknown format `uint16`"),
    ],
)
def test_what_does_not_fit_is_refused(made, what):
    with pytest.raises(ProjectError) as caught:
        made()
    assert what in caught.value.what


def test_every_form_that_is_written_is_read():
    for form in PACKED:
        dtype = "uint10" if form == "nv15" else "uint8"
        made = from_raw(to_raw(SMOOTH, form), form, (48, 64), dtype, (1, 0))
        assert np.abs(made.astype(int) - SMOOTH).mean() < 4
