"""Computes the steps of `data.<input>.transforms`; project/transforms.py has their arguments.

Steps that resize, crop or pad (geometry.py) take (H, W, C). Color steps (colors.py) take the
layout of their `data_format`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from npumake.data import colors, geometry
from npumake.data.geometry import as_image, pair, shape_text
from npumake.errors import ProjectError, Route
from npumake.project import transforms as steps

Change = Callable[[np.ndarray], np.ndarray]
_FITTING = ("target_size", "crop_size", "size")  # default to the input's height and width


def transformed(
    array: np.ndarray,
    transforms: Sequence[steps.Transform],
    size: tuple[int, int],
    route: str,
    file: str,
) -> np.ndarray:
    """The array of `file` after all steps; `size` is the input's (height, width).

    Raises ProjectError if an array does not fit its step; `route` is the key of the steps.
    """
    for number, step in enumerate(transforms):
        ((name, arguments),) = step.items()
        try:
            array = TRANSFORMS[name](array, _fitted(arguments, size))
        except ProjectError as error:
            error.where = Route(f"{route}.{number}")
            error.hint = f"{error.hint}; {file}" if error.hint else f"in {file}"
            raise
    return array


def color_order(transforms: Sequence[steps.Transform]) -> Literal["rgb", "bgr"] | None:
    """The channel order that the first color step takes; None without one."""
    for step in transforms:
        ((name, arguments),) = step.items()
        order = arguments.color_sequence if isinstance(arguments, steps.Yuv) else name
        if order[:3].lower() in ("rgb", "bgr"):
            return "rgb" if order[0] in "rR" else "bgr"
    return None


def makes_yuv(transforms: Sequence[steps.Transform]) -> bool:
    return any("yuv" in name or "nv12" in name for step in transforms for name in step)


def _fitted(arguments: Any, size: tuple[int, int]) -> Any:
    open_sizes = [
        key.name
        for key in fields(arguments)
        if key.name in _FITTING and getattr(arguments, key.name) is None
    ]
    return replace(arguments, **dict.fromkeys(open_sizes, size))


def mean(array: np.ndarray, to: steps.Mean) -> np.ndarray:
    means = np.array(to.means, np.float32)
    if means.ndim and to.data_format == "CHW":
        means = means.reshape(-1, 1, 1)
    try:
        return array - means
    except ValueError:
        raise ProjectError(f"{means.size} means for {shape_text(array)}") from None


def normalize(array: np.ndarray, to: steps.Normalize) -> np.ndarray:
    if to.std == 0:
        raise ProjectError("a division by zero")
    return array / np.float32(to.std)


def transpose(array: np.ndarray, to: steps.Transpose) -> np.ndarray:
    if sorted(to.order) != list(range(array.ndim)):
        raise ProjectError(f"{list(to.order)} is not an order of the axes of {shape_text(array)}")
    return array.transpose(to.order)


def reduce_channel(array: np.ndarray, to: steps.Colors) -> np.ndarray:
    as_image(array)
    return array[:1] if to.data_format == "CHW" else array[..., :1]


def _color(change: Change, order: str, shift: float = 0) -> Callable[[np.ndarray, Any], np.ndarray]:
    """A step that takes images in `order` ("rgb" or "bgr") through `change`, then adds `shift`."""

    def changed(image: np.ndarray, to: steps.Colors | steps.Nv12) -> np.ndarray:
        output = change(_rgb(image, to.data_format, order)) + np.float32(shift)
        return output.transpose(2, 0, 1) if output.ndim == 3 and to.data_format == "CHW" else output

    return changed


def swapped(image: np.ndarray, to: steps.Colors) -> np.ndarray:
    return image[::-1] if to.data_format == "CHW" else as_image(image)[..., ::-1]


def yuv(image: np.ndarray, to: steps.Yuv) -> np.ndarray:
    return colors.yuv_full(_rgb(image, "HWC", to.color_sequence.lower()))


def _nv12(order: str) -> Callable[[np.ndarray, Any], np.ndarray]:
    def changed(image: np.ndarray, to: steps.Nv12) -> np.ndarray:
        rgb = _rgb(image, to.data_format, order)
        return colors.nv12_video(rgb) if to.cvt_mode == "opencv" else colors.nv12_full(rgb)

    return changed


def nv12_to_yuv444(array: np.ndarray, to: steps.Nv12ToYuv444) -> np.ndarray:
    image = colors.yuv_of_nv12(array, *pair(to.target_size))
    return image.transpose(2, 0, 1) if to.yuv444_output_layout == "CHW" else image


def _rgb(image: np.ndarray, axes: str, order: str) -> np.ndarray:
    """(H, W, 3), red first."""
    image = as_image(image).transpose(1, 2, 0) if axes == "CHW" else as_image(image)
    if image.shape[2] != 3:
        hint = "`data_format` says where the channels are: CHW or HWC"
        raise ProjectError(f"{image.shape[2]} channels, a color image has 3", hint=hint)
    return image if order == "rgb" else image[..., ::-1]


TRANSFORMS: Mapping[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    "add": lambda array, to: array + np.float32(to.value),
    "mean": mean,
    "scale": lambda array, to: array * np.float32(to.scale_value),
    "normalize": normalize,
    "transpose": transpose,
    "hwc2chw": lambda array, _: as_image(array).transpose(2, 0, 1),
    "chw2hwc": lambda array, _: as_image(array).transpose(1, 2, 0),
    "center_crop": geometry.center_crop,
    "pil_center_crop": geometry.pil_center_crop,
    "long_side_crop": geometry.long_side_crop,
    "pad_resize": geometry.pad_resize,
    "resize": geometry.resize,
    "pil_resize": geometry.pil_resize,
    "short_long_resize": geometry.short_long_resize,
    "pad": geometry.pad,
    "short_side_resize": geometry.short_side_resize,
    "padded_center_crop": geometry.padded_center_crop,
    "bgr2rgb": swapped,
    "rgb2bgr": swapped,
    "rgb2gray": _color(colors.gray, "rgb"),
    "bgr2gray": _color(colors.gray, "bgr"),
    "rgb2gray_128": _color(colors.gray, "rgb", -128),
    "rgb2yuv444": _color(colors.yuv_full, "rgb"),
    "bgr2yuv444": _color(colors.yuv_full, "bgr"),
    "bgr2yuv444_128": _color(colors.yuv_full, "bgr", -128),
    "rgb2yuv444_128": _color(colors.yuv_full, "rgb", -128),
    "bgr2yuvbt601video": _color(colors.yuv_video, "bgr"),
    "rgb2yuvbt601video": _color(colors.yuv_video, "rgb"),
    "yuv": yuv,
    "reduce_channel": reduce_channel,
    "bgr2nv12": _nv12("bgr"),
    "rgb2nv12": _nv12("rgb"),
    "nv12_to_yuv444": nv12_to_yuv444,
    "warp_affine": geometry.warp_affine,
    "f32_to_s8": lambda array, _: np.clip(array, -128, 127).astype(np.int8),
    "f32_to_u8": lambda array, _: np.clip(array, 0, 255).astype(np.uint8),
}
