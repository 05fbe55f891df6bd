"""One file of every format, and what is no file of it."""

import io
import random
import time
import tracemalloc
import zipfile

import cv2
import numpy as np
import pytest
import safetensors.numpy
from PIL import Image

from npumake.data.files import noise, prepared, to_feed
from npumake.data.formats import HEADERS, MAX_MEMBER_BYTES, InputSpec, decoded
from npumake.engine.parallel import side_by_side
from npumake.errors import ProjectError
from npumake.project.sections import Files
from npumake.project.transforms import CenterCrop, PadResize, Resize

RGB = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
FLOAT = InputSpec((1, 3, 4, 6), "float32")
IMAGE = InputSpec((1, 3, 4, 6), "float32", 128)


def picture(format: str = "png", array: np.ndarray = RGB, mode: str | None = None) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(file, format)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def read(
    data: bytes, name: str, taken: InputSpec = FLOAT, layout: str = "NCHW", **how: object
) -> np.ndarray:
    said = Files(**how)
    return prepared(decoded(data, name, said, taken), name, said, taken, layout)


def refusal(data: bytes, name: str, taken: InputSpec = FLOAT, **how: object) -> str:
    with pytest.raises(ProjectError) as caught:
        read(data, name, taken, **how)
    assert caught.value.where == name
    return caught.value.what


@pytest.mark.parametrize("format", ["png", "bmp"])
def test_an_image_gets_the_layout_of_its_input(format):
    chw = RGB.transpose(2, 0, 1)[None]
    assert np.array_equal(read(picture(format), f"x.{format}"), chw)
    given = read(picture(), "x.PNG", InputSpec((1, 4, 6, 3), "float32"), "NHWC")
    assert np.array_equal(given, RGB[None])
    assert np.array_equal(to_feed(read(picture(), "x.png", IMAGE), IMAGE), chw.astype(float) - 128)


def test_opencv_reads_the_same_with_channels_bgr():
    data = picture()
    theirs = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(read(data, "x.png", channels="bgr"), theirs.transpose(2, 0, 1)[None])


def test_a_jpeg_is_opencvs_to_a_few_codes():
    smooth = np.dstack([np.linspace(0, 255, 24 * 36).reshape(24, 36)] * 3).astype(np.uint8)
    data = picture("jpeg", smooth)
    theirs = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    ours = read(data, "x.jpg", InputSpec((1, 3, 24, 36), "float32"), channels="bgr")
    assert np.abs(ours[0].transpose(1, 2, 0) - theirs.astype(float)).max() <= 1


def test_scikit_image_reads_the_same_with_values_0_to_1():
    chw = RGB.transpose(2, 0, 1)[None]
    np.testing.assert_allclose(read(picture(), "x.png", values="0..1"), chw / 255, rtol=1e-6)


def test_gray_has_one_channel():
    taken = InputSpec((1, 1, 4, 6), "float32")
    theirs = cv2.cvtColor(RGB, cv2.COLOR_RGB2GRAY)
    assert np.abs(read(picture(), "x.png", taken, channels="gray")[0, 0] - 1.0 * theirs).max() <= 1


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "1", "LA"])
def test_every_8_bit_image_has_three_channels(mode):
    assert read(picture("png", mode=mode), "x.png").shape == (1, 3, 4, 6)


def test_gray_of_16_bits_is_refused_with_two_ways_that_are_read():
    values = (np.arange(24).reshape(4, 6) * 1000).astype(np.uint16)
    taken = InputSpec((1, 1, 4, 6), "float32")
    with pytest.raises(ProjectError, match="only 8 bits are read") as caught:
        read(picture("png", values), "x.png", taken, channels="gray")
    assert caught.value.hint.startswith("save it with 8 bits per channel, or its values as a .npy")
    eight = (values >> 8).astype(np.uint8)
    saved = read(picture("png", eight), "x.png", taken, channels="gray")
    assert np.array_equal(saved[0, 0], eight)
    stored = io.BytesIO()
    np.save(stored, values[None, None].astype(np.float32))
    assert np.array_equal(read(stored.getvalue(), "x.npy", taken)[0, 0], values)


def test_transforms_make_an_image_fit():
    taken = InputSpec((1, 3, 8, 8), "float32")
    letterbox = read(picture(), "x.png", taken, transforms=({"pad_resize": PadResize()},))
    assert letterbox.shape == (1, 3, 8, 8)
    assert (letterbox[0, :, 0] == 127).all()
    steps = ({"resize": Resize((10, 10))}, {"center_crop": CenterCrop()})
    assert read(picture(), "x.png", taken, transforms=steps).shape == (1, 3, 8, 8)


def test_an_image_of_another_size_says_what_makes_it_fit():
    with pytest.raises(ProjectError) as caught:
        read(picture(), "x.png", InputSpec((1, 3, 8, 8), "float32"))
    assert caught.value.what == "a sample of shape [4, 6, 3], the input takes [1, 3, 8, 8]"
    assert "pad_resize" in caught.value.hint


def test_bare_numbers_have_the_shape_of_the_input():
    values = np.arange(72, dtype=np.float32)
    assert np.array_equal(read(values.tobytes(), "x.bin"), values.reshape(1, 3, 4, 6))
    assert np.array_equal(read(RGB.tobytes(), "x.rgb", IMAGE), RGB.reshape(1, 3, 4, 6))
    floats = read(values.tobytes(), "x.rgb", IMAGE, dtype="float32")
    assert floats.ravel().tolist() == values.tolist()
    assert refusal(bytes(71), "x", IMAGE) == "71 bytes, the input takes 72: [1, 3, 4, 6] of uint8"


def test_an_archive_gives_its_one_array_or_the_named_one():
    x, y = np.float32(RGB.reshape(3, 4, 6)), np.zeros(3)
    assert np.array_equal(read(npz(x=x), "s.npz")[0], x)
    assert np.array_equal(read(npz(x=x, y=y), "s.npz", member="x")[0], x)
    tensors = safetensors.numpy.save({"x": x, "y": y})
    assert np.array_equal(read(tensors, "s.safetensors", member="x")[0], x)
    for data, name in ((npz(x=x, y=y), "s.npz"), (tensors, "s.safetensors")):
        assert refusal(data, name) == "2 arrays in one file"
        assert refusal(data, name, member="z") == "no array `z` in the file"
    assert refusal(npz(x=np.array([{}])), "s.npz").startswith("not a .npy file of numbers")


@pytest.mark.slow
def test_a_zip_bomb_takes_no_memory():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x", "w") as to:
        for _ in range(20):
            to.write(bytes(MAX_MEMBER_BYTES // 16))
    assert refusal(file.getvalue(), "s.npz").startswith("member `x` has more than")


def test_a_decompression_bomb_is_refused_unread():
    head = bytearray(picture("bmp"))
    head[18:26] = (20_000).to_bytes(4, "little") * 2
    tracemalloc.start()
    assert refusal(bytes(head), "x.bmp").startswith("an image of more than")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    "name", ["x.png", "x.jpg", "x.bmp", "x.npz", "x.safetensors", "x.npy", "x"]
)
@pytest.mark.parametrize("data", [b"", b"hello", picture()[:40], npz(x=RGB)[:99], bytes(64)])
def test_what_is_not_a_file_of_its_kind_is_refused(name, data):
    assert refusal(data, name)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.png", picture()),
        ("x.jpg", picture("jpeg")),
        ("x.bmp", picture("bmp")),
        ("x.npz", npz(x=RGB)),
        ("x.safetensors", safetensors.numpy.save({"x": RGB})),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_any_damage_is_a_sample_or_one_project_error(name, data):
    rng = random.Random(0)
    refused = 0
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read(bytes(damaged[: rng.randrange(len(data) // 2, 2 * len(data))]), name)
        except ProjectError:
            refused += 1
    assert refused > 0  # of so much damage some is always found


def test_one_header_is_parsed_at_a_time(monkeypatch):
    """Python 3.11 before .8 now and then fails where two threads parse (gh-106905)."""
    inside, most = [], []

    def slowly(file, **limits):
        inside.append(file)
        time.sleep(0.001)
        most.append(len(inside))
        inside.remove(file)
        return HEADERS[1, 0](file, **limits)

    monkeypatch.setattr("npumake.data.formats.HEADERS", {(1, 0): slowly})
    file = io.BytesIO()
    np.save(file, np.arange(6.0).reshape(2, 3))
    taken, data = InputSpec((2, 3), "<f8"), file.getvalue()
    made = side_by_side(lambda _: decoded(data, "x.npy", Files("x"), taken), range(32), 8)
    assert all((one == [[0, 1, 2], [3, 4, 5]]).all() for one in made)
    assert max(most) == 1


def test_noise_is_seeded_and_within_its_range():
    first = noise("image", Files(random=2), IMAGE)
    assert np.array_equal(first(1), noise("image", Files(random=2), IMAGE)(1))
    assert not np.array_equal(first(0), first(1))
    assert not np.array_equal(first(0), noise("other", Files(random=2), IMAGE)(0))
    assert 0 <= first(0).min() < 50 < 200 < first(0).max() <= 255
    assert np.array_equal(first(0), np.rint(first(0)))
    small = noise("x", Files(random=1, range=(-2.0, -1.0)), FLOAT)(0)
    assert -2 <= small.min() < small.max() <= -1
    assert small.dtype == np.float32
