"""Draws detections over their image; reads the JSON that `synap_cli_od` prints.

A mask is resized to the image. Where it is positive inside the bounding box, the color of its
class is added. Default colors have equal brightness and hues spaced by the golden ratio.
"""

from __future__ import annotations

import colorsys
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from npumake.data import resampling
from npumake.errors import ProjectError

Color = tuple[int, int, int]  # red, green, blue
FRAME: Color = (128, 255, 0)
FRAME_PIXELS = 2  # pixels of a frame
FONT_PIXELS = 12
MAX_COORDINATE = 1 << 20  # pixels from the corner of the image
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Mask:
    values: tuple[float, ...]
    width: int
    height: int


@dataclass(frozen=True)
class Detection:
    """`box` is (x, y, width, height), landmarks are (x, y), all in pixels of the image."""

    class_index: int
    confidence: float
    box: tuple[int, int, int, int]
    landmarks: tuple[tuple[float, float], ...] = ()
    mask: Mask | None = None


def detections(text: str) -> tuple[Detection, ...]:
    """The detections in the JSON of `text`; text before the first brace is skipped.

    Raises ProjectError for missing JSON and for an invalid detection.
    """
    start = text.find("{")
    if start < 0:
        raise ProjectError("no JSON in the input", hint="give it the output of synap_cli_od")
    document = _parsed(text[start:])
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise ProjectError("the JSON has no list of `items`", hint="synap_cli_od prints one")
    return tuple(_detection(item, f"items.{n}") for n, item in enumerate(items))


def mask_colors(text: str) -> Mapping[int, Color]:
    """The colors by class, from JSON {"0": [blue, green, red]}. Raises ProjectError."""
    document = _parsed(text)
    if not isinstance(document, dict):
        raise ProjectError("not a JSON object of colors by class")
    return {_class(name): _color(name, color) for name, color in document.items()}


def with_detections(
    rgb: np.ndarray,
    items: Sequence[Detection],
    colors: Mapping[int, Color] | None = None,
    labels: Sequence[str] = (),
) -> Image.Image:
    """The image (H, W, 3), uint8, with the masks, frames, classes and landmarks of `items`. A class
    without one of `labels` is a number."""
    picture = Image.fromarray(_with_masks(rgb, items, colors or {}))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(FONT_PIXELS)
    for detection in items:
        x, y, width, height = detection.box
        draw.rectangle((x, y, x + width, y + height), outline=FRAME, width=FRAME_PIXELS)
        index = detection.class_index
        name = labels[index] if 0 <= index < len(labels) else str(index)
        above = y - FONT_PIXELS - 3
        text = f"{name}{'' if labels else ':'} {detection.confidence:.2f}"
        draw.text((x + 1, above if above >= 0 else y + 2), text, FRAME, font)
        for at, below in detection.landmarks:
            draw.rectangle((int(at), int(below), int(at) + 2, int(below) + 2), outline=FRAME)
    return picture


def table(items: Sequence[Detection]) -> Iterator[str]:
    """A header and one line per detection."""
    yield "#   Score  Class   Position        Size  Description     Landmarks"
    for n, detection in enumerate(items):
        x, y, width, height = detection.box
        marks = " ".join(f"{at:g},{below:g}" for at, below in detection.landmarks)
        where = f"{x:4},{y:4}   {width:4},{height:4}"
        head = f"{n:<5}{detection.confidence:.2f}{detection.class_index:>7}"
        yield f"{head}  {where:34}{marks}".rstrip()


def _with_masks(
    rgb: np.ndarray, items: Sequence[Detection], colors: Mapping[int, Color]
) -> np.ndarray:
    added = np.zeros_like(rgb)
    for detection in items:
        if detection.mask is None:
            continue
        small = np.array(detection.mask.values, np.float32).reshape(
            detection.mask.height, detection.mask.width, 1
        )
        x, y, width, height = detection.box
        inside = np.s_[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]
        covered = resampling.linear(small, rgb.shape[:2])[inside][..., 0] > 0
        added[inside][covered] = colors.get(
            detection.class_index, _own_color(detection.class_index)
        )
    return np.minimum(rgb.astype(np.uint16) + added, 255).astype(np.uint8)


def _own_color(index: int) -> Color:
    red, green, blue = colorsys.hsv_to_rgb(index * GOLDEN % 1, 0.8, 0.8)
    return round(255 * red), round(255 * green), round(255 * blue)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"not JSON: {error}") from error


def _detection(item: Any, where: str) -> Detection:
    box = [
        _pixel(_at(item, "bounding_box", part, axis, where=where), where)
        for part in ("origin", "size")
        for axis in ("x", "y")
    ]
    if min(box[2:]) < 0:
        raise ProjectError("a bounding box of negative size", where)
    points = _at(item, "landmarks", "points", where=where) if "landmarks" in item else ()
    if not isinstance(points, list | tuple):
        raise ProjectError("`landmarks.points` is not a list", where)
    return Detection(
        int(_number(_at(item, "class_index", where=where), where)),
        _number(_at(item, "confidence", where=where), where),
        (box[0], box[1], box[2], box[3]),
        tuple(_point(point, where) for point in points),
        _mask(item["mask"], f"{where}.mask") if item.get("mask") else None,
    )


def _mask(item: Any, where: str) -> Mask | None:
    data = _at(item, "data", where=where)
    if not data:
        return None
    sides = [_pixel(_at(item, side, where=where), where) for side in ("width", "height")]
    if not isinstance(data, list) or min(sides) < 1 or len(data) != sides[0] * sides[1]:
        raise ProjectError(f"a mask of {sides[0]}x{sides[1]} without as many values", where)
    return Mask(tuple(_number(value, where) for value in data), *sides)


def _at(item: Any, *keys: str, where: str) -> Any:
    for key in keys:
        if not isinstance(item, dict) or key not in item:
            raise ProjectError(f"a detection without `{'.'.join(keys)}`", where)
        item = item[key]
    return item


def _point(item: Any, where: str) -> tuple[float, float]:
    return _number(_at(item, "x", where=where), where), _number(_at(item, "y", where=where), where)


def _number(value: Any, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or abs(value) > MAX_COORDINATE:
        raise ProjectError(f"`{str(value)[:20]}` is not a number", where)
    return value


def _pixel(value: Any, where: str) -> int:
    return int(_number(value, where))


def _class(name: str) -> int:
    if not name.isdecimal() or len(name) > 9:
        raise ProjectError(f"`{name[:20]}` is not a class", hint="its number, from 0 on")
    return int(name)


def _color(name: str, color: Any) -> Color:
    is_color = isinstance(color, list) and len(color) == 3
    if not is_color or not all(type(code) is int and 0 <= code <= 255 for code in color):
        raise ProjectError(f"class {name} has no color", hint="write [blue, green, red], 0..255")
    return color[2], color[1], color[0]
