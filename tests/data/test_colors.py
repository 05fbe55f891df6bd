"""Colours against OpenCV and Pillow, to one code."""

import cv2
import numpy as np
import pytest
from PIL import Image

from npumake.data import colors
from npumake.errors import ProjectError

RNG = np.random.default_rng(0)
CORNERS = np.array([[[r, g, b] for b in (0, 255)] for r in (0, 255) for g in (0, 255)], np.uint8)
RGB = np.concatenate([CORNERS.reshape(2, 4, 3), RNG.integers(0, 256, (30, 4, 3), np.uint8)])


def near(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.abs(ours - theirs.astype(np.float64)).max() <= 1)


def blocks(image: np.ndarray) -> np.ndarray:
    """The same colour in every 2 x 2 pixels."""
    return image.repeat(2, 0).repeat(2, 1)


def planes_of_opencv(rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Y and (U, V) as OpenCV makes them: video range."""
    height, width = rgb.shape[:2]
    i420 = cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420).reshape(-1)
    u, v = i420[height * width :].reshape(2, height // 2, width // 2)
    return i420[: height * width].reshape(height, width), np.stack([u, v], -1)


def test_full_range_is_the_one_of_jpeg():
    theirs = np.asarray(Image.fromarray(RGB).convert("YCbCr"))
    assert near(colors.yuv_full(RGB), theirs)


def test_gray_is_opencvs():
    assert near(colors.gray(RGB)[..., 0], cv2.cvtColor(RGB, cv2.COLOR_RGB2GRAY))


def test_analogue_yuv_is_opencvs_there_and_back():
    yuv = cv2.cvtColor(RGB, cv2.COLOR_RGB2YUV)
    assert near(colors.yuv_analog(RGB), yuv)
    assert near(colors.rgb_of_yuv_analog(yuv), cv2.cvtColor(yuv, cv2.COLOR_YUV2RGB))


def test_video_range_is_opencvs():
    rgb = blocks(RGB)
    y, uv = planes_of_opencv(rgb)
    ours = colors.yuv_video(rgb)
    assert near(ours[..., 0], y)
    assert near(ours[::2, ::2, 1:], uv)
    assert ours[..., 0].min() == 16
    assert ours[..., 0].max() == 235


def test_nv12_in_video_range_is_opencvs():
    y, uv = planes_of_opencv(RGB)
    ours = colors.nv12_video(RGB)
    assert near(ours[: len(y)], y)
    assert near(ours[len(y) :].reshape(uv.shape), uv)


def test_nv12_in_full_range_is_jpegs_of_the_mean_colour():
    small = RNG.integers(0, 256, (4, 3, 3), np.uint8)
    nv12 = colors.nv12_full(blocks(small))
    theirs = np.asarray(Image.fromarray(blocks(small)).convert("YCbCr"))
    assert nv12.shape == (12, 6)
    assert near(colors.yuv_of_nv12(nv12, 8, 6), theirs)


def test_nv12_in_full_range_averages():
    rgb = np.zeros((2, 2, 3), np.uint8)
    rgb[0, 0] = 255, 0, 0
    assert colors.nv12_full(rgb)[2].tolist() == [128 - 11, 128 + 32]  # -43 / 4 and 127.5 / 4


def test_opencv_reads_back_our_planes():
    rgb = blocks(RGB[2:])
    nv12 = colors.nv12_video(rgb).astype(np.uint8)
    back = cv2.cvtColor(nv12, cv2.COLOR_YUV2RGB_NV12)
    assert np.abs(back.astype(int) - rgb).max() <= 3  # the codes of Y, U and V are whole


@pytest.mark.parametrize("shape", [(3, 4, 3), (4, 3, 3)])
def test_nv12_of_an_odd_size_is_refused(shape):
    with pytest.raises(ProjectError, match="even size"):
        colors.nv12_full(np.zeros(shape))
    with pytest.raises(ProjectError, match="not an NV12 image"):
        colors.yuv_of_nv12(np.zeros(18), *shape[:2])
