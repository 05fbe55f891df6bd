"""The steps of `data.<input>.transforms`: their names, their arguments and the defaults.

They are the transformers of the D-Robotics guide with its names:
`CenterCropTransformer(crop_size=224)` is `center_crop: {crop_size: 224}`. data/transforms.py
computes the steps.

ShortLongResizeTransformer's `include_im`, which feeds the image's size to a second input, has no
counterpart: the samples of that input are files of their own under `data:`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from npumake.project.doc import Doc

MAX_SIDE_PIXELS = 8_192  # pixels on a side

Size = int | tuple[int, ...]
Axes = Literal["CHW", "HWC"]
Pixels = Literal["float", "uint8"]

_SIZE = Doc("[height, width], or one number. Default: the size of the input.", 1, MAX_SIDE_PIXELS)
_SIDE = Doc("Side length in pixels.", 1, MAX_SIDE_PIXELS)
_AXES = Doc("Layout of the image.")
_PIXELS = Doc("Type of the result; uint8 truncates fractions.")
_CUBIC = Doc("INTER_CUBIC; empty: linear.")


@dataclass(frozen=True)
class NoOptions:
    """A step without arguments."""


@dataclass(frozen=True)
class Add:
    value: Annotated[float, Doc("Added to each value.")]


@dataclass(frozen=True)
class Mean:
    means: Annotated[float | tuple[float, ...], Doc("Subtracted: one value, or one per channel.")]
    data_format: Annotated[Axes, _AXES] = "CHW"


@dataclass(frozen=True)
class Scale:
    scale_value: Annotated[float, Doc("Factor of each value.")]


@dataclass(frozen=True)
class Normalize:
    std: Annotated[float, Doc("Divisor of each value.")]


@dataclass(frozen=True)
class Transpose:
    order: Annotated[tuple[int, ...], Doc("The axes in their new order.", 0, 3)]


@dataclass(frozen=True)
class CenterCrop:
    crop_size: Annotated[Size | None, _SIZE] = None
    data_type: Annotated[Pixels, _PIXELS] = "float"


@dataclass(frozen=True)
class PilCenterCrop:
    size: Annotated[Size | None, _SIZE] = None


@dataclass(frozen=True)
class PadResize:
    target_size: Annotated[Size | None, _SIZE] = None
    pad_value: Annotated[float, Doc("Value of the border.")] = 127.0
    pad_position: Annotated[
        Literal["boundary", "bottom_right"], Doc("Border on all sides, or after the image.")
    ] = "boundary"


@dataclass(frozen=True)
class Resize:
    target_size: Annotated[Size | None, _SIZE] = None
    mode: Annotated[
        Literal["skimage", "opencv"],
        Doc("skimage: splines, smoothed before shrinking. opencv: linear or cubic."),
    ] = "skimage"
    method: Annotated[int, Doc("skimage: order of the spline; 0 is nearest.", 0, 5)] = 1
    data_type: Annotated[Pixels, _PIXELS] = "float"
    interpolation: Annotated[Literal["", "INTER_CUBIC"], _CUBIC] = ""


@dataclass(frozen=True)
class PilResize:
    size: Annotated[
        Size | None,
        Doc(
            "[height, width], or the short side. Default: the size of the input.",
            1,
            MAX_SIDE_PIXELS,
        ),
    ] = None
    interpolation: Annotated[
        Literal["NEAREST", "BILINEAR", "BICUBIC", "LANCZOS", "BOX", "HAMMING"],
        Doc("Pillow's filter."),
    ] = "BILINEAR"


@dataclass(frozen=True)
class ShortLongResize:
    short_size: Annotated[int, _SIDE]
    long_size: Annotated[int, Doc("Maximum length of the long side.", 1, MAX_SIDE_PIXELS)]


@dataclass(frozen=True)
class ShortSideResize:
    short_size: Annotated[int, _SIDE]
    data_type: Annotated[Pixels, _PIXELS] = "float"
    interpolation: Annotated[Literal["", "INTER_CUBIC"], _CUBIC] = ""


@dataclass(frozen=True)
class Pad:
    size_divisor: Annotated[
        int, Doc("The size is rounded up to a multiple of this.", 1, MAX_SIDE_PIXELS)
    ] = 128
    target_size: Annotated[Size, Doc("[height, width] or one number.", 1, MAX_SIDE_PIXELS)] = 512


@dataclass(frozen=True)
class PaddedCenterCrop:
    image_size: Annotated[int, Doc("Side length of the model's image.", 1, MAX_SIDE_PIXELS)] = 224
    crop_pad: Annotated[int, Doc("Border in pixels that is cut off.", 0, MAX_SIDE_PIXELS)] = 32


@dataclass(frozen=True)
class Colors:
    data_format: Annotated[Axes, _AXES] = "CHW"


@dataclass(frozen=True)
class Yuv:
    color_sequence: Annotated[Literal["BGR", "RGB"], Doc("Channel order of an image (H, W, C).")]


@dataclass(frozen=True)
class Nv12:
    data_format: Annotated[Axes, _AXES] = "CHW"
    cvt_mode: Annotated[
        Literal["rgb_calc", "opencv"],
        Doc("Full range with averaged chroma, or OpenCV's video range."),
    ] = "rgb_calc"


@dataclass(frozen=True)
class Nv12ToYuv444:
    target_size: Annotated[Size | None, _SIZE] = None
    yuv444_output_layout: Annotated[Axes, _AXES] = "HWC"


@dataclass(frozen=True)
class WarpAffine:
    input_shape: Annotated[Size, Doc("[height, width] of the result.", 1, MAX_SIDE_PIXELS)]
    scale: Annotated[float, Doc("Factor by which the image is resized first.", 0.01, 100)]


class Transform(TypedDict, total=False):
    """One step, by its name."""

    add: Annotated[Add, Doc("x + value")]
    mean: Annotated[Mean, Doc("x - means")]
    scale: Annotated[Scale, Doc("x * scale_value")]
    normalize: Annotated[Normalize, Doc("x / std")]
    transpose: Annotated[Transpose, Doc("Reorders the axes.")]
    hwc2chw: Annotated[NoOptions, Doc("Channels first.")]
    chw2hwc: Annotated[NoOptions, Doc("Channels last.")]
    center_crop: Annotated[CenterCrop, Doc("The center of an image (H, W, C).")]
    pil_center_crop: Annotated[PilCenterCrop, Doc("The center, rounded as Pillow users do.")]
    long_side_crop: Annotated[NoOptions, Doc("The center square of an image (H, W, C).")]
    pad_resize: Annotated[PadResize, Doc("Letterbox: keeps proportions and fills the rest.")]
    resize: Annotated[Resize, Doc("Resizes to a size; proportions may change.")]
    pil_resize: Annotated[PilResize, Doc("Pillow's resize of an 8-bit image.")]
    short_long_resize: Annotated[
        ShortLongResize, Doc("Resizes to a short side, bounded by the long side.")
    ]
    pad: Annotated[Pad, Doc("Zeros below and to the right.")]
    short_side_resize: Annotated[
        ShortSideResize, Doc("Resizes to a short side and keeps proportions.")
    ]
    padded_center_crop: Annotated[PaddedCenterCrop, Doc("EfficientNet's center square.")]
    bgr2rgb: Annotated[Colors, Doc("Reverses the channels.")]
    rgb2bgr: Annotated[Colors, Doc("Reverses the channels.")]
    rgb2gray: Annotated[Colors, Doc("BT.601 luma, 0..255.")]
    bgr2gray: Annotated[Colors, Doc("BT.601 luma, 0..255.")]
    rgb2gray_128: Annotated[Colors, Doc("BT.601 luma, -128..127.")]
    rgb2yuv444: Annotated[Colors, Doc("Full range, 0..255.")]
    bgr2yuv444: Annotated[Colors, Doc("Full range, 0..255.")]
    bgr2yuv444_128: Annotated[Colors, Doc("Full range, -128..127.")]
    rgb2yuv444_128: Annotated[Colors, Doc("Full range, -128..127.")]
    bgr2yuvbt601video: Annotated[Colors, Doc("BT.601 video range, 16..235.")]
    rgb2yuvbt601video: Annotated[Colors, Doc("BT.601 video range, 16..235.")]
    yuv: Annotated[Yuv, Doc("Full range, 0..255, of an image (H, W, C).")]
    reduce_channel: Annotated[Colors, Doc("Keeps the first channel only.")]
    bgr2nv12: Annotated[Nv12, Doc("Y plane, then interleaved U and V: (height * 3 / 2, width).")]
    rgb2nv12: Annotated[Nv12, Doc("Y plane, then interleaved U and V: (height * 3 / 2, width).")]
    nv12_to_yuv444: Annotated[Nv12ToYuv444, Doc("One U and V per four pixels.")]
    warp_affine: Annotated[WarpAffine, Doc("CenterNet's square around the center.")]
    f32_to_s8: Annotated[NoOptions, Doc("Converts to int8.")]
    f32_to_u8: Annotated[NoOptions, Doc("Converts to uint8.")]
