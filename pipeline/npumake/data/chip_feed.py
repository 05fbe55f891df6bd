"""Converts a sample from the trained form to the form that the chip is fed.

    trained colors and layout → size and crop of the picture → colors and layout of each plane

Codes are rounded half up and clamped to 0..255. Half-size chroma is the mean of 2x2 pixels. For
nv12 as a single plane, chroma is upsampled again by repeating each value four times.
"""

from __future__ import annotations

import numpy as np

from npumake.data.samples import Feed
from npumake.kernels.arrays import Floats
from npumake.kernels.color import halved, mixed, mixing, stretched
from npumake.project.feeding import Feeding, Plane

_ORDERS = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}


def fed_form(sample: np.ndarray, feeding: Feeding, name: str) -> Feed:
    """The feeds of the graph inputs for the model input `name`, minus the offset.

    `sample` has the trained shape, minus the offset too. A crop selects the whole picture.
    """
    if feeding.is_as_trained:
        return {name: sample}
    if not feeding.channels:
        return {name: _ordered(sample, feeding.layout, feeding.planes[0].layout)}
    trained = _ordered(sample, feeding.layout, "NCHW").astype(np.float64) + feeding.offset
    picture = stretched(trained, *feeding.fed_size)
    height, width = feeding.fed_size
    values = [_plane(picture, plane, feeding) for plane in feeding.planes]
    if feeding.crop:
        values += [np.array([side], np.int32) for side in (width, height, 0, 0)]
    return dict(zip(feeding.inputs(name), values, strict=True))


def _plane(picture: Floats, plane: Plane, feeding: Feeding) -> np.ndarray:
    """A plane of `picture` (N, C, H, W, trained colors): float32 codes minus the offset."""
    values = mixed(picture, mixing(feeding.channels, plane.channels, video=feeding.video))
    if plane.halved:
        values = halved(values)
    if plane.from_nv12:
        chroma = stretched(_codes(halved(values[:, 1:])), *feeding.fed_size)
        values = np.concatenate([values[:, :1], chroma], axis=1)
    return _ordered((_codes(values) - feeding.offset).astype(np.float32), "NCHW", plane.layout)


def _codes(values: Floats) -> Floats:
    return np.clip(np.floor(values + 0.5), 0, 255)


def _ordered(values: np.ndarray, source: str, target: str) -> np.ndarray:
    order = _ORDERS.get((source, target)) if values.ndim == 4 else None
    return np.ascontiguousarray(values.transpose(order)) if order else values
