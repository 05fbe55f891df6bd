"""Samples that hold what the float model computes with, and the values it was given.

n = (x - mean) * scale        x = n / scale + mean
"""

from __future__ import annotations

import numpy as np

from npumake.errors import ProjectError
from npumake.project.sections import PerChannel


def raw(sample: np.ndarray, mean: PerChannel, scale: PerChannel, layout: str) -> np.ndarray:
    """x of n, of the sample's shape and type; `mean` and `scale` are one number or per channel.

    Raises ProjectError for a scale of 0, and for other numbers than channels.
    """
    axis = sample.ndim - 1 if layout == "NHWC" else min(1, sample.ndim - 1)
    if not np.all(scale):
        raise ProjectError("a scale of 0 cannot be taken back", hint="see `normalized`")
    gain, shift = (_along(values, axis, sample) for values in (scale, mean))
    return (sample / gain + shift).astype(sample.dtype)


def normalized(sample: np.ndarray, mean: PerChannel, scale: PerChannel, layout: str) -> np.ndarray:
    """n of x, float32, of the sample's shape. Raises ProjectError as `raw`."""
    axis = sample.ndim - 1 if layout == "NHWC" else min(1, sample.ndim - 1)
    gain, shift = (_along(values, axis, sample) for values in (scale, mean))
    return ((sample - shift) * gain).astype(np.float32)


def _along(values: PerChannel, axis: int, sample: np.ndarray) -> np.ndarray:
    """float64, of a shape that lies along `axis`."""
    array = np.asarray(values, np.float64).reshape(-1)
    if array.size not in (1, sample.shape[axis]):
        what = f"{array.size} values for {sample.shape[axis]} channels"
        raise ProjectError(what, hint="give one number for all channels, or one per channel")
    return array.reshape([-1 if index == axis else 1 for index in range(sample.ndim)])
