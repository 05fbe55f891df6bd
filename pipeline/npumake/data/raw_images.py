"""Raw images without a header, in the formats of SyNAP's image tools.

    rgb bgr gray    height, width, channels          nv12 nv21    a plane of Y, and below it one of
    bgra            alpha is 255, and not read                    half the size: U and V, or V and U
    rgbp            a plane per channel              nv15         nv12 of ten bits, see `ten_bits`

YUV is OpenCV's (colors.py). Shrinking follows the tools: a Gaussian of sigma (f - 1) / 2, with f
the larger factor, then averaging by area. U and V are halved the same way and doubled by cubic
interpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np

from npumake.data import colors, resampling
from npumake.errors import ProjectError, did_you_mean

T = TypeVar("T")
Codes = np.ndarray  # of 8 bits, as uint8
DTYPES = {"uint8": "<u1", "uint10": "<u1", "float32": "<f4", "float": "<f4", "float16": "<f2"}
GROUP = 4  # ten-bit values per 5 bytes


def to_raw(rgb: Codes, form: str, size: tuple[int, int] | None = None) -> bytes:
    """The bytes of `rgb` (H, W, 3) in `form`, stretched to `size` (height, width).

    Raises ProjectError for an unknown form and a size that the form does not allow.
    """
    pack = _named(PACKED, form)
    if size is not None:
        resampling.refuse_large(size)
        rgb = shrunk(rgb, size)
    return pack(rgb).tobytes()


def from_raw(
    data: bytes, form: str, size: tuple[int, int], dtype: str, linear: tuple[float, float]
) -> Codes:
    """The picture (height, width, 3); `linear` = (scale, bias) maps values to (v + bias) * scale.

    Raises ProjectError for an unknown form or type, and for a wrong number of bytes.
    """
    unpack, values = _named(UNPACKED, form), _values(data, dtype)
    height, width = size
    expected = width * height * SAMPLES[form] / 2
    if values.size != expected:
        message = f"{values.size} values of {dtype} are no {form} image of {width}x{height}"
        raise ProjectError(message, hint=f"such an image has {expected:g} of them")
    scale, bias = linear
    return unpack(_rounded((values.astype(np.float64) + bias) * scale), height, width)


def shrunk(image: Codes, size: tuple[int, int]) -> Codes:
    """(H, W, C) → (*size, C), smoothed before shrinking."""
    factor = max(image.shape[0] / size[0], image.shape[1] / size[1])
    if factor > 1:
        image = _rounded(resampling.smoothed(image, (factor - 1) / 2))
    return image if image.shape[:2] == size else _rounded(resampling.area(image, size))


def ten_bits(codes: Codes) -> np.ndarray:
    """Packs codes times 4 as ten bits each: four per five bytes, lowest bits first."""
    if codes.size % GROUP:
        raise ProjectError(f"{codes.size} values do not fill groups of {GROUP}, as nv15 needs")
    wide = (codes.reshape(-1, GROUP).astype(np.uint64) * 4) << (10 * np.arange(GROUP)).astype("u8")
    packed = np.bitwise_or.reduce(wide, axis=1).astype("<u8")
    return packed.view(np.uint8).reshape(-1, 8)[:, :5]


def of_ten_bits(data: np.ndarray) -> np.ndarray:
    """Unpacks `ten_bits` to values 0..255.75."""
    if data.size % 5:
        raise ProjectError(f"{data.size} bytes are not groups of 5, as ten bits need")
    wide = np.zeros((data.size // 5, 8), np.uint8)
    wide[:, :5] = data.reshape(-1, 5)
    shifts = (10 * np.arange(GROUP)).astype("u8")
    return ((wide.view("<u8") >> shifts) & np.uint64(1023)).reshape(-1) / 4


def _values(data: bytes, dtype: str) -> np.ndarray:
    kind = np.dtype(_named(DTYPES, dtype))
    if len(data) % kind.itemsize:
        raise ProjectError(f"{len(data)} bytes are not values of {dtype}")
    values = np.frombuffer(data, kind)
    if kind.kind == "f" and not np.isfinite(values).all():
        raise ProjectError("an image with NaN or infinity")
    return of_ten_bits(values) if dtype == "uint10" else values


def _named(table: Mapping[str, T], name: str) -> T:
    if name not in table:
        raise ProjectError(f"unknown format `{name}`", hint=did_you_mean(name, table))
    return table[name]


def _rounded(values: np.ndarray) -> Codes:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)


def _semiplanar(rgb: Codes, chroma: slice) -> Codes:
    """Y, then the channels `chroma` of (Y, U, V) at half the size."""
    height, width = rgb.shape[:2]
    if height % 2 or width % 2:
        raise ProjectError(f"an image with U and V needs an even size, not {width}x{height}")
    yuv = colors.yuv_analog(rgb).astype(np.uint8)
    half = shrunk(yuv, (height // 2, width // 2))
    return np.concatenate([yuv[..., 0].reshape(-1), half[..., chroma].reshape(-1)])


def _of_semiplanar(values: Codes, height: int, width: int, order: slice) -> Codes:
    if height % 2 or width % 2:
        raise ProjectError(f"an image with U and V has an even size, not {width}x{height}")
    y, half = np.split(values, [height * width])
    chroma = resampling.cubic(half.reshape(height // 2, width // 2, 2), (height, width))
    yuv = np.dstack([y.reshape(height, width), _rounded(chroma)[..., order]])
    return colors.rgb_of_yuv_analog(yuv).astype(np.uint8)


UV, VU = slice(1, 3), slice(2, 0, -1)
PACKED: Mapping[str, Callable[[Codes], np.ndarray]] = {
    "rgb": lambda rgb: rgb,
    "bgr": lambda rgb: rgb[..., ::-1],
    "rgbp": lambda rgb: rgb.transpose(2, 0, 1),
    "bgra": lambda rgb: np.dstack([rgb[..., ::-1], np.full_like(rgb[..., 0], 255)]),
    "nv12": partial(_semiplanar, chroma=UV),
    "nv21": partial(_semiplanar, chroma=VU),
    "nv15": lambda rgb: ten_bits(_semiplanar(rgb, UV)),
}
UNPACKED: Mapping[str, Callable[[Codes, int, int], Codes]] = {
    "rgb": lambda values, height, width: values.reshape(height, width, 3),
    "bgr": lambda values, height, width: values.reshape(height, width, 3)[..., ::-1],
    "rgbp": lambda values, height, width: values.reshape(3, height, width).transpose(1, 2, 0),
    "bgra": lambda values, height, width: values.reshape(height, width, 4)[..., 2::-1],
    "gray": lambda values, height, width: values.reshape(height, width, 1).repeat(3, 2),
    "nv12": partial(_of_semiplanar, order=slice(None)),
    "nv21": partial(_of_semiplanar, order=slice(None, None, -1)),
    "nv15": partial(_of_semiplanar, order=slice(None)),
}
# Values per two pixels.
SAMPLES = {"rgb": 6, "bgr": 6, "rgbp": 6, "bgra": 8, "gray": 2, "nv12": 3, "nv21": 3, "nv15": 3}
