"""Crop: resizes a rectangle of the picture, chosen at run time, to the model's size.

Along one axis the rectangle starts at s and has n pixels; the model takes m. Output pixel i lies
at (i + 1/2) n / m - 1/2 within the rectangle, which is P / 2m for the integer

    P = clip((2i + 1) n - m, 0, 2m (n - 1))      a = P // 2m      r = P - 2m a
    y_i = (2m x[s + a] + r (x[s + a + 1] - x[s + a]) + m) // 2m

This interpolates linearly between the two nearest codes x and rounds. All arithmetic is integer:
coordinates need no calibrated range, shapes stay static, and every machine gives the same result.
For a = n - 1, r is 0, so no pixel outside the rectangle counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from npumake.borders.front import Front
from npumake.graph import Value
from npumake.project.feeding import Feeding


def cropped(
    front: Front, picture: Value, rectangle: Mapping[str, Value], feeding: Feeding, name: str
) -> Value:
    """`picture` cropped and resized to the trained size; float codes minus the offset.

    `rectangle` holds width, height, left and top, each int32 (1,). Outside the picture the last
    row or column is repeated.
    """
    offset = front.integers(f"{name}_offset", feeding.offset)
    whole = front.cast(picture, "int32", f"{name}_whole")
    codes = front.add("Add", [whole, offset], f"{name}_codes")
    row = feeding.layout.index("H")
    for n, (start, length) in enumerate((("top", "height"), ("left", "width"))):
        sizes = feeding.fed_size[n], feeding.trained_size[n]
        side = _Side(f"{name}_{length}", row + n, rectangle[start], rectangle[length], *sizes)
        codes = _resampled(front, codes, side)
    centered = front.add("Sub", [codes, offset], f"{name}_centred")
    return front.cast(centered, "float32", f"{name}_cropped")


class _Side(NamedTuple):
    """One axis; `start` is s, `length` n and `size` m of the formula above."""

    name: str
    axis: int
    start: Value
    length: Value
    whole: int  # of the picture
    size: int


def _resampled(front: Front, x: Value, side: _Side) -> Value:
    """y along the side's axis of the int32 codes x."""
    name, m = side.name, front.integers(f"{side.name}_m", side.size)
    unit = front.integers(f"{name}_2m", 2 * side.size)
    place = _place(front, side, m, unit)
    first = front.add("Div", [place, unit], f"{name}_first")
    floor = front.add("Mul", [first, unit], f"{name}_floor")
    rest = front.add("Sub", [place, floor], f"{name}_rest")
    lane = np.array([-1 if axis == side.axis else 1 for axis in range(4)], np.int64)
    part = front.add("Reshape", [rest, front.graph.constant(f"{name}_lane", lane)], f"{name}_part")
    shifted = front.add("Add", [first, side.start], f"{name}_here")
    next_ = front.add("Add", [shifted, front.integers(f"{name}_step", 1)], f"{name}_next")
    near, far = _at(front, x, shifted, side, "near"), _at(front, x, next_, side, "far")
    rise = front.add("Sub", [far, near], f"{name}_rise")
    risen = front.add("Mul", [rise, part], f"{name}_risen")
    base = front.add("Add", [front.add("Mul", [near, unit], f"{name}_base"), m], f"{name}_half")
    total = front.add("Add", [base, risen], f"{name}_sum")
    return front.add("Div", [total, unit], f"{name}_taken")


def _place(front: Front, side: _Side, m: Value, unit: Value) -> Value:
    """P, int32 (m,)."""
    name = side.name
    odd = front.integers(f"{name}_odd", *range(1, 2 * side.size, 2))
    step, zero = front.integers(f"{name}_one", 1), front.integers(f"{name}_zero", 0)
    spread = front.add("Mul", [odd, side.length], f"{name}_spread")
    middle = front.add("Sub", [spread, m], f"{name}_middle")
    remaining = front.add("Sub", [side.length, step], f"{name}_less")
    last = front.add("Mul", [remaining, unit], f"{name}_last")
    inside = front.add("Min", [middle, last], f"{name}_inside")
    return front.add("Max", [inside, zero], f"{name}_place")


def _at(front: Front, x: Value, index: Value, side: _Side, end: str) -> Value:
    """x at these indices, clamped to the picture."""
    name, constant = f"{side.name}_{end}", front.graph.constant
    low = constant(f"{name}_low", np.array(0, np.int32))
    high = constant(f"{name}_high", np.array(side.whole - 1, np.int32))
    inside = front.add("Clip", [index, low, high], f"{name}_index")
    return front.add("Gather", [x, inside], name, axis=side.axis)
