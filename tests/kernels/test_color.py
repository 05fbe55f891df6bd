"""Colour matrices against OpenCV, to ±1 code."""

import cv2
import numpy as np
import pytest

from npumake.kernels.color import halved, mixed, mixing, stretched

rng = np.random.default_rng(0)
RGB = rng.integers(0, 256, (64, 64, 3), np.uint8)
ORDER = {"rgb": [0, 1, 2], "bgr": [2, 1, 0]}


def converted(picture: np.ndarray, given: str, made: str, *, video: bool = False) -> np.ndarray:
    """(H, W, C) codes to (H, W, C') codes, rounded and clipped."""
    values = mixed(picture.transpose(2, 0, 1)[None], mixing(given, made, video=video))
    return np.clip(np.rint(values[0].transpose(1, 2, 0)), 0, 255).astype(int)


@pytest.mark.parametrize("given", ["rgb", "bgr"])
def test_full_range_is_jfif_there_and_back(given):
    code = {"rgb": cv2.COLOR_RGB2YCrCb, "bgr": cv2.COLOR_BGR2YCrCb}[given]
    back = {"rgb": cv2.COLOR_YCrCb2RGB, "bgr": cv2.COLOR_YCrCb2BGR}[given]
    yvu = cv2.cvtColor(RGB, code)
    assert np.abs(converted(RGB, given, "yvu") - yvu).max() <= 1
    assert np.abs(converted(yvu, "yvu", given) - cv2.cvtColor(yvu, back)).max() <= 1


@pytest.mark.parametrize("made", ["rgb", "bgr"])
def test_video_range_is_bt601(made):
    """Blocks of one colour, so that NV12 keeps it whole."""
    blocks = RGB[::2, ::2].repeat(2, 0).repeat(2, 1)
    i420 = cv2.cvtColor(blocks, cv2.COLOR_RGB2YUV_I420).reshape(-1)
    y, u, v = i420[:4096], i420[4096:5120], i420[5120:]
    chroma = [plane.reshape(32, 32).repeat(2, 0).repeat(2, 1) for plane in (u, v)]
    yuv = np.stack([y.reshape(64, 64), *chroma], axis=2)
    assert np.abs(converted(blocks, "rgb", "yuv", video=True) - yuv).max() <= 1
    nv12 = np.concatenate([y, np.stack([u, v], axis=1).reshape(-1)]).reshape(96, 64)
    code = {"rgb": cv2.COLOR_YUV2RGB_NV12, "bgr": cv2.COLOR_YUV2BGR_NV12}[made]
    assert np.abs(converted(yuv, "yuv", made, video=True) - cv2.cvtColor(nv12, code)).max() <= 1


@pytest.mark.parametrize("video", [False, True])
def test_there_and_back_is_the_identity_to_rounding_of_float64(video):
    there, back = mixing("rgb", "yuv", video=video), mixing("yuv", "rgb", video=video)
    np.testing.assert_allclose(back.matrix @ there.matrix, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(back.matrix @ there.shift + back.shift, 0, atol=1e-12)


@pytest.mark.parametrize(("given", "made"), [("bgr", "rgb"), ("bgra", "rgb"), ("yvu", "yuv")])
def test_channels_that_are_given_are_copied_exactly(given, made):
    how = mixing(given, made, video=True)
    assert how.shift.tolist() == [0] * 3
    assert [given[int(row.argmax())] for row in how.matrix] == list(made)
    assert how.matrix.sum() == 3


def test_halved_is_the_mean_of_blocks_and_stretched_takes_the_pixel_at_the_place():
    picture = np.arange(16.0).reshape(1, 1, 4, 4)
    assert halved(picture).ravel().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert stretched(picture, 2, 4)[0, 0].tolist() == picture[0, 0, [1, 3]].tolist()
    np.testing.assert_array_equal(stretched(picture, 8, 8), picture.repeat(2, 2).repeat(2, 3))
