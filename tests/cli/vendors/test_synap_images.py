"""npumake synap image_to_raw | image_from_raw | image_od: files in, files out."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from npumake.cli.main import main

RGB = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
FOUND = {
    "items": [
        {
            "bounding_box": {"origin": {"x": 1, "y": 1}, "size": {"x": 5, "y": 4}},
            "class_index": 0,
            "confidence": 0.5,
        }
    ]
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(RGB).save(tmp_path / "face.png")
    return tmp_path


def synap(*words: str) -> int:
    return main(["synap", *words])


@pytest.mark.parametrize(
    ("suffix", "size"), [("nv12", 72), ("nv21", 72), ("nv15", 90), ("rgbp", 144), ("bgra", 192)]
)
def test_a_bare_suffix_is_the_format_and_takes_the_name(here, suffix, size):
    assert synap("image_to_raw", "-i", "face.png", "-o", f".{suffix}") == 0
    assert (here / f"face.{suffix}").stat().st_size == size


def test_a_format_that_is_given_goes_before_the_suffix(here):
    assert synap("image_to_raw", "-i", "face.png", "-o", "a.rgb", "--format", "BGR") == 0
    assert (here / "a.rgb").read_bytes() == RGB[..., ::-1].tobytes()


@pytest.mark.parametrize("channels", [1, 3])
def test_of_16_bits_the_upper_8_are_taken(here, channels):
    deep = np.random.default_rng(1).integers(0, 1 << 16, (6, 8, channels), np.uint16)
    (here / "deep.png").write_bytes(cv2.imencode(".png", deep[..., ::-1])[1].tobytes())
    assert synap("image_to_raw", "-i", "deep.png", "-o", ".rgb") == 0
    wanted = np.broadcast_to((deep >> 8).astype(np.uint8), (6, 8, 3))
    assert (here / "deep.rgb").read_bytes() == wanted.tobytes()


def test_an_image_is_resized(here):
    assert synap("image_to_raw", "-i", "face.png", "-o", "a.rgb", "-s", "4x2") == 0
    assert (here / "a.rgb").stat().st_size == 4 * 2 * 3


@pytest.mark.parametrize("name", ["face_8x6.rgb", "a_b@8x6_out.rgb", "1x1_8x6.rgb"])
def test_the_size_may_stand_in_the_name(here, name):
    (here / name).write_bytes(RGB.tobytes())
    assert synap("image_from_raw", "-i", name, "-o", ".png") == 0
    made = np.asarray(Image.open((here / name).with_suffix(".png")))
    np.testing.assert_array_equal(made, RGB)


def test_raw_values_are_scaled(here):
    (here / "a.raw").write_bytes((RGB / np.float32(255)).astype(np.float32).tobytes())
    words = "image_from_raw -i a.raw -o a.png -s 8x6 --format rgb --dtype float32 --scale 255"
    assert synap(*words.split()) == 0
    np.testing.assert_array_equal(np.asarray(Image.open(here / "a.png")), RGB)


def test_a_photograph_is_turned_upright(here):
    note = Image.Exif()
    note[0x0112] = 6  # the camera was held a quarter to the left
    Image.fromarray(RGB).save(here / "held.png", exif=note)
    assert synap("image_to_raw", "-i", "held.png", "-o", ".rgb") == 0
    assert (here / "held.rgb").read_bytes() == np.rot90(RGB, -1).tobytes()


def test_detections_are_drawn_and_told(here, monkeypatch, capsys):
    given = io.TextIOWrapper(io.BytesIO(b"Detection time: 5 ms\n" + json.dumps(FOUND).encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert synap("image_od", "-i", "face.png", "-o", "found.png", "--verbose") == 0
    assert np.asarray(Image.open(here / "found.png"))[1, 1].tolist() == [128, 255, 0]
    assert capsys.readouterr().out.splitlines()[-1] == "detection 0 has no mask"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("image_to_raw -i no.png -o .rgb", ["no such file", "no.png"]),
        ("image_to_raw -i face.png -o a.raw", ["unknown format `raw`", "face.png"]),
        ("image_to_raw -i face.png -o .rgb -s 8", ["`8` is not a size", "--size", "WxH"]),
        ("image_from_raw -i face.png -o .jpg", ["no size in the name", "face.png"]),
        ("image_from_raw -i face.png -o .jpg -s 8x6", ["unknown format `png`"]),
        ("image_from_raw -i a_8x6.rgb -o .gif", ["`.gif` is not an image format", ".png"]),
        ("image_od -i face.png -o a.png --mask_colors face.png", ["not JSON", "face.png"]),
    ],
)
def test_one_clear_error(here, capsys, words, expected):
    (here / "a_8x6.rgb").write_bytes(RGB.tobytes())
    assert synap(*words.split()) == 2
    told = capsys.readouterr().err
    assert [text for text in expected if text not in told] == [], told
    assert told.count("error: ") == 1
