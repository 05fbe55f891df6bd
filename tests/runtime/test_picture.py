"""A file as what an input is fed."""

import numpy as np
import pytest
from PIL import Image

from npumake.engine.port import Port
from npumake.errors import ProjectError
from npumake.runtime.picture import feed_from_file

RED = np.zeros((4, 6, 3), np.uint8)
RED[..., 0] = 200


@pytest.fixture
def red(tmp_path):
    Image.fromarray(RED).save(tmp_path / "red.png")
    return tmp_path / "red.png"


@pytest.mark.parametrize(
    ("shape", "colors", "at"),
    [
        ([1, 3, 2, 3], None, (0, 0)),
        ([1, 3, 2, 3], "bgr", (0, 2)),
        (["N", 2, 3, 3], None, (0, slice(None), slice(None), 0)),
        ([2, 3, 8, 8], "rgb", (1, 0)),
    ],
    ids=["NCHW", "bgr", "NHWC", "two of them"],
)
def test_a_picture_has_the_size_layout_and_colors_of_the_input(red, shape, colors, at):
    found = feed_from_file(red, Port("x", shape, "tensor(float)"), colors)
    assert found.dtype == np.uint8
    assert list(found.shape) == [size if isinstance(size, int) else 1 for size in shape]
    assert (found[at] == 200).all()
    assert found.sum() == 200 * found.size / 3


def test_one_channel_is_gray(red):
    found = feed_from_file(red, Port("x", [1, 1, 2, 3], "tensor(float)"))
    assert set(found.ravel()) == {60}  # 0.299 * 200


def test_numbers_are_fed_as_they_lie_in_the_file(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0))
    found = feed_from_file(tmp_path / "a.npy", Port("x", [1, 2, 3], "tensor(float)"))
    assert (found.dtype, found.shape) == (np.float32, (1, 2, 3))


def test_real_numbers_for_codes_stay_real_and_whole_ones_that_do_not_fit_are_refused(tmp_path):
    codes = Port("x", [2], "tensor(int8)")
    np.save(tmp_path / "real.npy", np.array([0.4, -1.6]))
    np.save(tmp_path / "whole.npy", np.array([127, -128]))
    np.save(tmp_path / "wide.npy", np.array([127, 128]))
    real = feed_from_file(tmp_path / "real.npy", codes)
    np.testing.assert_array_equal(real, np.array([0.4, -1.6], np.float32), strict=True)
    whole = feed_from_file(tmp_path / "whole.npy", codes)
    np.testing.assert_array_equal(whole, np.array([127, -128], np.int8), strict=True)
    with pytest.raises(ProjectError, match="that int8 does not hold"):
        feed_from_file(tmp_path / "wide.npy", codes)


@pytest.mark.parametrize(
    ("name", "shape", "colors", "what"),
    [
        ("red.png", [1, 7], None, "is not a picture"),
        ("red.png", [1, 3, 2, 3], "gray", "has 1 channels"),
        ("red.png", [1, 3, 2, 3], "hsv", "no colors `hsv`"),
        ("absent.png", [1, 3, 2, 3], None, "no such file"),
        ("a.npy", [1, 3], None, "where `x` takes"),
    ],
)
def test_what_does_not_fit_is_refused(red, tmp_path, name, shape, colors, what):
    np.save(tmp_path / "a.npy", np.arange(6.0))
    with pytest.raises(ProjectError, match=what):
        feed_from_file(tmp_path / name, Port("x", shape, "tensor(float)"), colors)
