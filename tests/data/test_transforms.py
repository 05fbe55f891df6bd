"""Every step of the transformer table: its name, its defaults, and what OpenCV or Pillow makes."""

from collections.abc import Iterable
from typing import get_type_hints

import cv2
import numpy as np
import pytest
from PIL import Image

from npumake.data.transforms import TRANSFORMS, transformed
from npumake.errors import ProjectError
from npumake.project.document import parse_document
from npumake.project.reader import built
from npumake.project.transforms import Transform

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (24, 36, 3), np.uint8)
# The classes of the reference, without the word Transformer they all end in.
REFERENCE = (
    "Add Mean Scale Normalize Transpose HWC2CHW CHW2HWC CenterCrop PILCenterCrop LongSideCrop "
    "PadResize Resize PILResize ShortLongResize Pad ShortSideResize PaddedCenterCrop BGR2RGB "
    "RGB2BGR RGB2GRAY BGR2GRAY RGB2GRAY_128 RGB2YUV444 BGR2YUV444 BGR2YUV444_128 RGB2YUV444_128 "
    "BGR2YUVBT601VIDEO RGB2YUVBT601VIDEO YUV ReduceChannel BGR2NV12 RGB2NV12 NV12ToYUV444 "
    "WarpAffine F32ToS8 F32ToU8"
)


def made(array: np.ndarray, *steps: str, size: tuple[int, int] = (12, 18)) -> np.ndarray:
    """`array` through steps as they are written in YAML."""
    document = parse_document(f"[{', '.join(steps)}]".encode(), "p.yaml")
    return transformed(
        array, built(tuple[Transform, ...], document.data), size, "data.x", "cat.png"
    )


def refusal(array: np.ndarray, *steps: str) -> str:
    with pytest.raises(ProjectError) as caught:
        made(array, *steps)
    assert caught.value.where == f"data.x.{len(steps) - 1}"
    assert "cat.png" in caught.value.hint
    return caught.value.what


def within_one(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return ours.shape == theirs.shape and np.abs(ours - theirs.astype(float)).max() <= 1


def letters(names: Iterable[str]) -> list[str]:
    return sorted(name.replace("_", "").lower() for name in names)


def test_the_table_is_the_reference_table():
    assert set(TRANSFORMS) == set(get_type_hints(Transform))
    assert letters(TRANSFORMS) == letters(REFERENCE.split())


def test_numbers():
    x = np.ones((3, 2, 2), np.float32)
    assert made(x, "{add: {value: 2}}", "{scale: {scale_value: 4}}")[0, 0, 0] == 12
    assert made(x, "{normalize: {std: 4}}")[0, 0, 0] == 0.25
    assert made(x, "{mean: {means: [0, 1, 2]}}")[:, 0, 0].tolist() == [1, 0, -1]
    hwc = made(x, "{mean: {means: [0, 1], data_format: HWC}}")
    assert hwc[0, 0].tolist() == [1, 0]
    assert made(RGB, "{add: {value: 0.5}}").dtype == np.float32


def test_axes():
    assert made(RGB, "hwc2chw").shape == (3, 24, 36)
    assert np.array_equal(made(RGB, "hwc2chw", "chw2hwc"), RGB)
    assert made(RGB, "{transpose: {order: [1, 0, 2]}}").shape == (36, 24, 3)
    assert made(RGB, "hwc2chw", "reduce_channel").shape == (1, 24, 36)
    assert made(RGB, "{reduce_channel: {data_format: HWC}}").shape == (24, 36, 1)


def test_a_size_left_out_is_the_inputs():
    assert made(RGB, "resize").shape == (12, 18, 3)
    assert made(RGB, "center_crop").shape == (12, 18, 3)
    assert made(RGB, "pad_resize", size=(64, 32)).shape == (64, 32, 3)


def test_crops_are_of_the_middle():
    y, x = np.mgrid[0:24, 0:36]
    corner = np.stack([y, x], 2)
    assert made(corner, "{center_crop: {crop_size: 11}}")[0, 0].tolist() == [7, 13]
    assert made(corner, "{pil_center_crop: {size: [11, 11]}}")[0, 0].tolist() == [6, 12]
    assert made(corner, "long_side_crop").shape == (24, 24, 2)
    assert made(corner, "long_side_crop")[0, 0].tolist() == [0, 6]
    side = made(corner, "{padded_center_crop: {image_size: 224, crop_pad: 32}}")
    assert side.shape == (21, 21, 2)
    assert side[0, 0].tolist() == [2, 8]


def test_opencv_resizes_the_same():
    step = "{resize: {mode: opencv, target_size: [50, 20]}}"
    assert within_one(made(RGB, step), cv2.resize(RGB, (20, 50)))
    step = "{resize: {mode: opencv, target_size: [50, 20], interpolation: INTER_CUBIC}}"
    assert within_one(made(RGB, step), cv2.resize(RGB, (20, 50), interpolation=cv2.INTER_CUBIC))


def test_opencv_resizes_the_short_side_the_same():
    wide = made(RGB, "{short_side_resize: {short_size: 16}}")
    assert within_one(wide, cv2.resize(RGB, (24, 16)))
    tall = made(RGB.transpose(1, 0, 2), "{short_side_resize: {short_size: 16}}")
    assert tall.shape == (24, 16, 3)


def test_the_long_side_bounds_the_short_one():
    step = "{short_long_resize: {short_size: 48, long_size: %d}}"
    assert made(RGB, step % 100).shape == (48, 72, 3)
    assert made(RGB, step % 54).shape == (36, 54, 3)


@pytest.mark.parametrize("position", ["boundary", "bottom_right"])
def test_a_letterbox_keeps_proportions(position):
    step = f"{{pad_resize: {{target_size: [40, 30], pad_position: {position}}}}}"
    boxed = made(RGB, step)
    top = 10 if position == "boundary" else 0
    assert within_one(boxed[top : top + 20], cv2.resize(RGB, (30, 20)))
    border = np.delete(boxed, np.s_[top : top + 20], 0)
    assert np.unique(border).tolist() == [127]


def test_pillow_resizes_the_same():
    theirs = np.asarray(Image.fromarray(RGB).resize((20, 50), Image.Resampling.BICUBIC))
    ours = made(RGB, "{pil_resize: {size: [50, 20], interpolation: BICUBIC}}")
    assert np.array_equal(ours, theirs)
    assert made(RGB, "{pil_resize: {size: 12}}").shape == (12, 18, 3)


def test_padding_goes_up_to_a_multiple():
    padded = made(RGB, "{pad: {size_divisor: 32, target_size: 40}}")
    assert padded.shape == (64, 64, 3)
    assert np.array_equal(padded[:24, :36], RGB)
    assert not padded[24:].any()
    assert made(RGB, "pad").shape == (512, 512, 3)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_opencv_warps_the_same(scale):
    """CenterNet: a square of the long side around the center goes to the middle of the result."""
    step = 36 / 30
    resized = cv2.resize(RGB.astype(np.float32), (int(36 * scale), int(24 * scale)))
    center = np.array(resized.shape[1::-1]) / 2
    back = np.array([[step, 0, center[0] - 15 * step], [0, step, center[1] - 10 * step]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    theirs = cv2.warpAffine(resized, back, (30, 20), flags=flags)
    image = RGB.astype(np.float32)
    ours = made(image, f"{{warp_affine: {{input_shape: [20, 30], scale: {scale}}}}}")
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 255 / 32 + 1  # OpenCV's coordinates are in 1/32 pixels


@pytest.mark.parametrize("axes", ["HWC", "CHW"])
@pytest.mark.parametrize("order", ["rgb", "bgr"])
def test_colours_do_not_depend_on_order_or_axes(order, axes):
    image = RGB if order == "rgb" else RGB[..., ::-1]
    image = image if axes == "HWC" else image.transpose(2, 0, 1)
    form = f"{{data_format: {axes}}}"

    def laid(step: str) -> np.ndarray:
        result = made(image, f"{{{order}2{step}: {form}}}")
        return result.transpose(1, 2, 0) if result.ndim == 3 and axes == "CHW" else result

    full = np.asarray(Image.fromarray(RGB).convert("YCbCr"))
    assert within_one(laid("yuv444"), full)
    assert within_one(laid("yuv444_128"), full - 128.0)
    assert within_one(laid("gray"), cv2.cvtColor(RGB, cv2.COLOR_RGB2GRAY)[..., None])
    assert laid("yuvbt601video").max() <= 240
    assert laid("nv12").shape == (36, 36)


def test_channels_are_reversed():
    assert np.array_equal(made(RGB, "{rgb2bgr: {data_format: HWC}}"), RGB[..., ::-1])
    assert np.array_equal(made(RGB, "hwc2chw", "bgr2rgb", "chw2hwc"), RGB[..., ::-1])
    assert within_one(
        made(RGB[..., ::-1], "{yuv: {color_sequence: BGR}}"),
        np.asarray(Image.fromarray(RGB).convert("YCbCr")),
    )
    gray = made(RGB, "{rgb2gray_128: {data_format: HWC}}")
    assert gray.min() < 0 < gray.max() <= 127


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_nv12_is_read_back(layout):
    rgb = RGB[::2, ::2].repeat(2, 0).repeat(2, 1)
    steps = [
        "{rgb2nv12: {data_format: HWC}}",
        f"{{nv12_to_yuv444: {{yuv444_output_layout: {layout}}}}}",
    ]
    yuv = made(rgb, *steps, size=(24, 36))
    yuv = yuv if layout == "HWC" else yuv.transpose(1, 2, 0)
    assert within_one(yuv, np.asarray(Image.fromarray(rgb).convert("YCbCr")))


def test_opencvs_nv12_reads_back_in_opencv():
    rgb = cv2.resize(RGB[:4, :6], (36, 24), interpolation=cv2.INTER_NEAREST)
    nv12 = made(rgb, "{rgb2nv12: {data_format: HWC, cvt_mode: opencv}}").astype(np.uint8)
    back = cv2.cvtColor(nv12, cv2.COLOR_YUV2RGB_NV12)
    assert np.abs(back.astype(int) - rgb).max() <= 4


def test_types_are_cut_not_wrapped():
    x = np.array([-300, -1.7, 1.7, 300], np.float32)
    assert made(x, "f32_to_s8").tolist() == [-128, -1, 1, 127]
    assert made(x, "f32_to_u8").tolist() == [0, 0, 1, 255]
    step = "{resize: {mode: opencv, target_size: 5, data_type: uint8}}"
    assert made(RGB.astype(np.float32), step).dtype == np.uint8


@pytest.mark.parametrize(
    ("array", "step", "what"),
    [
        (
            RGB[0],
            "resize",
            "a sample of shape [36, 3] is not an image of height, width and channels",
        ),
        (RGB, "{center_crop: {crop_size: 25}}", "a sample of shape [24, 36, 3] is smaller"),
        (RGB, "{pad: {size_divisor: 1, target_size: 30}}", "a sample of shape [24, 36, 3] is lar"),
        (RGB, "rgb2gray", "24 channels, a color image has 3"),
        (RGB, "{resize: {target_size: [1, 2, 3]}}", "a size of 3 numbers"),
        (
            RGB,
            "{transpose: {order: [0, 1, 1]}}",
            "[0, 1, 1] is not an order of the axes of a sample",
        ),
        (RGB, "{mean: {means: [1, 2]}}", "2 means for a sample of shape [24, 36, 3]"),
        (RGB, "{normalize: {std: 0}}", "a division by zero"),
        (RGB * 1.0, "pil_resize", "Pillow resizes 8-bit images, not float64"),
        (RGB[:3], "{rgb2nv12: {data_format: HWC}}", "NV12 needs an even size, not 3 x 36"),
        (RGB, "nv12_to_yuv444", "2592 values are not an NV12 image of 12 x 18"),
        (RGB[:1], "{short_side_resize: {short_size: 8192}}", "an image resized to 8192 x 294912"),
    ],
)
def test_a_step_that_does_not_suit_is_named(array, step, what):
    before = "f32_to_u8" if array.dtype == np.uint8 else "{add: {value: 0}}"
    assert refusal(array, before, step).startswith(what)
