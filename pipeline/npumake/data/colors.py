"""Color conversions of 8-bit images, R G B in 0..255.

Full range (JFIF, ITU-T T.871):          Video range (ITU-R BT.601):
    Y =       0.299 R + 0.587 G + 0.114 B    Y = 16  + ( 65.481 R + 128.553 G +  24.966 B) / 255
    U = 128 + (B - Y) / 1.772                U = 128 + (-37.797 R -  74.203 G + 112.000 B) / 255
    V = 128 + (R - Y) / 1.402                V = 128 + (112.000 R -  93.786 G -  18.214 B) / 255

Analogue, U and V scaled to fit a signal (ITU-R BT.470; OpenCV's COLOR_BGR2YUV):
    Y = 0.299 R + 0.587 G + 0.114 B    U = 128 + 0.492 (B - Y)    V = 128 + 0.877 (R - Y)

Results are rounded to the nearest integer and clamped to 0..255. NV12 is a plane of Y, height x
width, and below it a plane of half the height with U and V of 2 x 2 pixels interleaved.
"""

from __future__ import annotations

import numpy as np

from npumake.errors import ProjectError

LUMA = np.array([0.299, 0.587, 0.114])
FULL = np.array([LUMA, ([0, 0, 1] - LUMA) / 1.772, ([1, 0, 0] - LUMA) / 1.402])
VIDEO = (
    np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
    / 255
)
ANALOG = np.array([LUMA, 0.492 * ([0, 0, 1] - LUMA), 0.877 * ([1, 0, 0] - LUMA)])
FULL_OFFSET, VIDEO_OFFSET = np.array([0.0, 128, 128]), np.array([16.0, 128, 128])


def gray(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H, W, 1), full range."""
    return _codes(_mixed(rgb, LUMA[None]))


def yuv_full(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H, W, 3)."""
    return _codes(_mixed(rgb, FULL) + FULL_OFFSET)


def yuv_video(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H, W, 3)."""
    return _codes(_mixed(rgb, VIDEO) + VIDEO_OFFSET)


def yuv_analog(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H, W, 3)."""
    return _codes(_mixed(rgb, ANALOG) + FULL_OFFSET)


def rgb_of_yuv_analog(yuv: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H, W, 3)."""
    y, u, v = np.moveaxis(yuv - FULL_OFFSET, 2, 0)
    r, b = y + v / 0.877, y + u / 0.492
    g = (y - LUMA[0] * r - LUMA[2] * b) / LUMA[1]
    return _codes(np.dstack([r, g, b]))


def nv12_full(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H * 3 / 2, W): U and V of the mean color of four pixels."""
    _refuse_odd(rgb)
    height, width = rgb.shape[:2]
    mean = rgb.reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3), np.float64)
    return _planes(yuv_full(rgb)[..., 0], yuv_full(mean)[..., 1:])


def nv12_video(rgb: np.ndarray) -> np.ndarray:
    """(H, W, 3) → (H * 3 / 2, W): U and V of the upper left pixel of four, as OpenCV has it."""
    _refuse_odd(rgb)
    yuv = yuv_video(rgb)
    return _planes(yuv[..., 0], yuv[::2, ::2, 1:])


def yuv_of_nv12(nv12: np.ndarray, height: int, width: int) -> np.ndarray:
    """height * width * 3 / 2 codes → (height, width, 3), each U and V for its four pixels.

    Raises ProjectError when there are more or fewer codes, or the size is odd.
    """
    if height % 2 or width % 2 or nv12.size * 2 != height * width * 3:
        raise ProjectError(f"{nv12.size} values are not an NV12 image of {height} x {width}")
    y, uv = np.split(nv12.reshape(-1), [height * width])
    uv = uv.reshape(height // 2, width // 2, 2).repeat(2, 0).repeat(2, 1)
    return np.concatenate([y.reshape(height, width, 1), uv], 2)


def _mixed(rgb: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Elementwise sums of products; a matrix product may differ between machines."""
    r, g, b = (rgb[..., n, None].astype(np.float64) for n in range(3))
    return r * weights[:, 0] + g * weights[:, 1] + b * weights[:, 2]


def _codes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.float32)


def _refuse_odd(image: np.ndarray) -> None:
    if image.shape[0] % 2 or image.shape[1] % 2:
        raise ProjectError(f"NV12 needs an even size, not {image.shape[0]} x {image.shape[1]}")


def _planes(y: np.ndarray, uv: np.ndarray) -> np.ndarray:
    return np.concatenate([y, uv.reshape(len(y) // 2, -1)])
