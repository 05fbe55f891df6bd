"""Resizes, crops and pads images (H, W, C). A resized uint8 image is rounded to uint8 again.

Steps with a `data_type` truncate, as `astype` does. Sizes are (height, width).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from npumake.data import resampling
from npumake.errors import ProjectError
from npumake.project import transforms as steps


def center_crop(image: np.ndarray, to: steps.CenterCrop) -> np.ndarray:
    height, width = pair(to.crop_size)
    top, left = image.shape[0] // 2 - height // 2, image.shape[1] // 2 - width // 2
    return _typed(_cropped(image, top, left, height, width), to.data_type)


def pil_center_crop(image: np.ndarray, to: steps.PilCenterCrop) -> np.ndarray:
    height, width = pair(to.size)
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return _cropped(image, top, left, height, width)


def long_side_crop(image: np.ndarray, _: steps.NoOptions) -> np.ndarray:
    height, width = as_image(image).shape[:2]
    side = min(height, width)
    return _cropped(image, (height - side) // 2, (width - side) // 2, side, side)


def padded_center_crop(image: np.ndarray, to: steps.PaddedCenterCrop) -> np.ndarray:
    height, width = as_image(image).shape[:2]
    side = int(to.image_size / (to.image_size + to.crop_pad) * min(height, width))
    return _cropped(image, (height - side + 1) // 2, (width - side + 1) // 2, side, side)


def pad_resize(image: np.ndarray, to: steps.PadResize) -> np.ndarray:
    height, width = pair(to.target_size)
    resampling.refuse_large((height, width))
    scale = min(height / as_image(image).shape[0], width / image.shape[1])
    inner = _linear(image, _scaled(image, scale))
    inside = to.pad_position == "boundary"
    top = (height - inner.shape[0]) // 2 if inside else 0
    left = (width - inner.shape[1]) // 2 if inside else 0
    padded = np.full((height, width, image.shape[2]), to.pad_value, np.float32)
    padded[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    return padded


def resize(image: np.ndarray, to: steps.Resize) -> np.ndarray:
    size = pair(to.target_size)
    if to.mode == "opencv":
        return _typed(_by_opencv(image, size, to.interpolation), to.data_type)
    return _typed(
        _rounded(resampling.spline(as_image(image), size, to.method), image), to.data_type
    )


def pil_resize(image: np.ndarray, to: steps.PilResize) -> np.ndarray:
    if as_image(image).dtype != np.uint8 or image.shape[2] not in (1, 3):
        raise ProjectError(f"Pillow resizes 8-bit images, not {image.dtype} {shape_text(image)}")
    size = _short_side(image, to.size) if isinstance(to.size, int) else pair(to.size)
    resampling.refuse_large(size)
    channels = image[..., 0] if image.shape[2] == 1 else image
    filtered = Image.fromarray(channels).resize(
        (size[1], size[0]), Image.Resampling[to.interpolation]
    )
    return np.asarray(filtered).reshape(*size, image.shape[2])


def short_side_resize(image: np.ndarray, to: steps.ShortSideResize) -> np.ndarray:
    size = _short_side(as_image(image), to.short_size)
    return _typed(_by_opencv(image, size, to.interpolation), to.data_type)


def short_long_resize(image: np.ndarray, to: steps.ShortLongResize) -> np.ndarray:
    short, long = sorted(as_image(image).shape[:2])
    scale = to.short_size / short
    if round(scale * long) > to.long_size:
        scale = to.long_size / long
    height, width = image.shape[:2]
    return _linear(image, (max(round(height * scale), 1), max(round(width * scale), 1)))


def pad(image: np.ndarray, to: steps.Pad) -> np.ndarray:
    height, width = (-(-side // to.size_divisor) * to.size_divisor for side in pair(to.target_size))
    below, right = height - as_image(image).shape[0], width - image.shape[1]
    if below < 0 or right < 0:
        raise ProjectError(f"{shape_text(image)} is larger than {height} x {width}")
    resampling.refuse_large((height, width))
    return np.pad(image, ((0, below), (0, right), (0, 0)))


def warp_affine(image: np.ndarray, to: steps.WarpAffine) -> np.ndarray:
    """CenterNet's map at rotation 0: destination p reads (p - size / 2) * step + center."""
    size = pair(to.input_shape)
    step = max(as_image(image).shape[:2]) / size[1]
    image = _linear(image, _scaled(image, to.scale))
    for axis, length in enumerate(size):
        x = (np.arange(length) - length / 2) * step + image.shape[axis] / 2
        image = resampling.along(
            image, axis, resampling.taps(x, image.shape[axis], order=1, border="zero")
        )
    return image


def shape_text(array: np.ndarray) -> str:
    return f"a sample of shape {list(array.shape)}"


def as_image(array: np.ndarray) -> np.ndarray:
    if array.ndim != 3 or array.size == 0:
        raise ProjectError(f"{shape_text(array)} is not an image of height, width and channels")
    return array


def pair(size: int | Sequence[int] | None) -> tuple[int, int]:
    sizes = (size, size) if isinstance(size, int) else tuple(size or ())
    if len(sizes) != 2:
        raise ProjectError(f"a size of {len(sizes)} numbers", hint="write [height, width]")
    return sizes[0], sizes[1]


def _cropped(image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    if min(top, left) < 0 or top + height > image.shape[0] or left + width > image.shape[1]:
        raise ProjectError(
            f"{shape_text(as_image(image))} is smaller than the crop, {height} x {width}"
        )
    return as_image(image)[top : top + height, left : left + width]


def _scaled(image: np.ndarray, scale: float) -> tuple[int, int]:
    return max(int(image.shape[0] * scale), 1), max(int(image.shape[1] * scale), 1)


def _short_side(image: np.ndarray, short: int) -> tuple[int, int]:
    height, width = image.shape[:2]
    if height < width:
        return short, int(short * width / height)
    return int(short * height / width), short


def _by_opencv(image: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    if interpolation == "INTER_CUBIC":
        return _rounded(resampling.cubic(as_image(image), size), image)
    return _linear(image, size)


def _linear(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return _rounded(resampling.linear(as_image(image), size), image)


def _rounded(image: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(image), 0, 255).astype(np.uint8) if like.dtype == np.uint8 else image


def _typed(image: np.ndarray, data_type: str) -> np.ndarray:
    if data_type == "uint8":
        return np.clip(image, 0, 255).astype(np.uint8)
    return image.astype(np.float32)
