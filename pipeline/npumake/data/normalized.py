"""Converts between normalized samples n and raw values x.

n = (x - mean) * scale        x = n / scale + mean
"""

from __future__ import annotations

import numpy as np

from npumake.errors import ProjectError
from npumake.project.sections import PerChannel


def raw(sample: np.ndarray, mean: PerChannel, scale: PerChannel, layout: str) -> np.ndarray:
    """Raw values x from normalized n, in the sample's shape and type.

    `mean` and `scale` are one number or one per channel. Raises ProjectError for a scale of 0 and
    for another number of values.
    """
    axis = sample.ndim - 1 if layout == "NHWC" else min(1, sample.ndim - 1)
    if not np.all(scale):
        raise ProjectError("a scale of 0 cannot be inverted", hint="see `normalized`")
    gain, shift = (_along(values, axis, sample) for values in (scale, mean))
    return (sample / gain + shift).astype(sample.dtype)


def normalized(sample: np.ndarray, mean: PerChannel, scale: PerChannel, layout: str) -> np.ndarray:
    """Normalized n from raw x, float32. Raises ProjectError as `raw` does."""
    axis = sample.ndim - 1 if layout == "NHWC" else min(1, sample.ndim - 1)
    gain, shift = (_along(values, axis, sample) for values in (scale, mean))
    return ((sample - shift) * gain).astype(np.float32)


def _along(values: PerChannel, axis: int, sample: np.ndarray) -> np.ndarray:
    """The values as float64, shaped to broadcast along `axis`."""
    array = np.asarray(values, np.float64).reshape(-1)
    if array.size not in (1, sample.shape[axis]):
        message = f"{array.size} values for {sample.shape[axis]} channels"
        raise ProjectError(message, hint="give one number for all channels, or one per channel")
    return array.reshape([-1 if index == axis else 1 for index in range(sample.ndim)])
