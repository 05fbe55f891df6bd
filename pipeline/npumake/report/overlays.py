"""Overlays over a picture: a class map of a segmentation model, or the masks of boxes.

A map is a PNG with a transparent background. A class's colour follows from its name, as in page.js,
so it is the same for both models and all samples.
"""

from __future__ import annotations

import base64
import colorsys
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

NO_CLASS = -1
MAX_PIXELS = 320  # pixels of the longer side
MAX_CELL_PIXELS = 8  # picture pixels per map pixel; coarser outputs are detector heads
OPAQUE = 150  # of 255
DIGITS = 4  # of shares


@dataclass(frozen=True)
class Overlay:
    """A PNG as a data URI, and (class, share of the picture), largest first."""

    map: str
    areas: tuple[tuple[str, float], ...]


def class_map(arrays: Mapping[str, np.ndarray], size: tuple[int, ...]) -> np.ndarray | None:
    """(h, w): the class of every pixel of a picture of `size`, (height, width); None if the
    outputs are not a class map."""
    values = next(iter(arrays.values()))
    if len(arrays) != 1 or values.ndim not in (3, 4) or values.shape[0] != 1:
        return None
    plane = values[0]
    if plane.ndim == 2:
        return plane.astype(np.int64) if _is_map(plane, size) and _counts(plane) else None
    codes = min((np.moveaxis(plane, axis, 0) for axis in (0, 2)), key=lambda c: _off(c[0], size))
    if not _is_map(codes[0], size) or len(codes) == 3:
        return None
    if len(codes) == 1:
        return codes[0].astype(np.int64) if _counts(codes) else None
    return np.asarray(codes.argmax(0))


def mask_map(masks: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(n, h, w) of bool, best first → (h, w): the class of the best mask that covers a pixel."""
    labels = np.full(masks.shape[1:], NO_CLASS)
    for mask, label in zip(masks[::-1], classes[::-1], strict=True):
        labels[mask] = label
    return labels


def overlay_of(classes: np.ndarray, labels: Sequence[str]) -> Overlay:
    """The overlay of a class map (h, w); a class without a label has its number as name."""
    numbers, counts = np.unique(classes[classes != NO_CLASS], return_counts=True)
    names = {int(n): labels[n] if n < len(labels) else str(n) for n in numbers}
    pixels = np.zeros((*classes.shape, 4), np.uint8)
    for number, name in names.items():
        pixels[classes == number] = (*_color(name), OPAQUE)
    image = Image.fromarray(pixels)
    image.thumbnail((MAX_PIXELS, MAX_PIXELS), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, "PNG")
    order = np.argsort(-counts, kind="stable")
    areas = ((names[int(numbers[i])], round(counts[i] / classes.size, DIGITS)) for i in order)
    uri = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    return Overlay(uri, tuple(areas))


def hue(name: str) -> int:
    """A hue in degrees; page.js computes the same from the first UTF-16 unit of each letter."""
    degrees = 200
    for letter in name:
        degrees = (degrees * 31 + int.from_bytes(letter.encode("utf-16-le")[:2], "little")) % 360
    return degrees


def _color(name: str) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(hue(name) / 360, 0.55, 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def _off(plane: np.ndarray, size: tuple[int, ...]) -> float:
    """The deviation of the plane's aspect ratio from the picture's, in its own pixels."""
    height, width = plane.shape
    return abs(height * size[1] - width * size[0]) / max(size)


def _is_map(plane: np.ndarray, size: tuple[int, ...]) -> bool:
    """Whether the plane has the picture's aspect ratio and is fine enough."""
    height, width = plane.shape
    is_fine = height * MAX_CELL_PIXELS >= size[0] and width * MAX_CELL_PIXELS >= size[1]
    return min(height, width) > 1 and is_fine and _off(plane, size) <= 0.5


def _counts(values: np.ndarray) -> bool:
    """Whether the values are class numbers."""
    return values.dtype.kind in "iu" and int(values.min()) >= 0
