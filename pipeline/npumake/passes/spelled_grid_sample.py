"""GridSample as gathers of computed positions, weighted and summed.

A number g of the grid is a coordinate c of an axis with n elements:

    c = ((g + 1) n - 1) / 2        with align_corners   c = (g + 1) / 2 (n - 1)

nearest reads round(c); linear floor(c) and the next, with weights by distance; cubic four elements
around c, with the weights of Keys for a = -3/4. Beyond the ends

    zeros        the weight is 0
    border       min(max(c, 0), n - 1)
    reflection   b + r, or e - r after an odd number of reflections; r = |c - b| mod (e - b)

where b, e are -1/2, n - 1/2, or with align_corners 0, n - 1. Coordinates are computed in the order
of onnxruntime, so that ties of nearest fall alike. A constant grid folds to constant positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from npumake.engine.ort import OrtSession
from npumake.graph import Node, Value, array, attribute, open_dimensions, part, shape
from npumake.passes.writing import Writing

KEYS = -0.75  # the a of the cubic kernel
MAX_TAPS = 64
MODES = {"bilinear": "linear", "bicubic": "cubic"}  # the names before opset 20


class Tap(NamedTuple):
    """An element along one axis: its place as int32, and its weight; None for 1."""

    place: Value
    weight: Value | None


class _Axis:
    """Writes the taps of one axis of `size` elements."""

    def __init__(self, write: Writing, number: int, size: int) -> None:
        self.write, self.name, self.size = write, f"axis_{number}", size
        self.aligned = bool(attribute(write.node, "align_corners", 0))
        self.padding: str = attribute(write.node, "padding_mode", "zeros")

    def combined(self, kind: str, *read: Value | float | None, **attributes: object) -> Value:
        """A node; numbers are constants."""
        values = [
            self.write.number(value, self.name) if isinstance(value, float) else value
            for value in read
        ]
        return self.write.insert(kind, values, f"{self.name}_{kind.lower()}", **attributes)

    def coordinate(self, grid: Value) -> Value:
        moved = self.combined("Add", grid, 1.0)
        if self.aligned:
            half = self.combined("Div", moved, 2.0)
            return self.combined("Mul", half, float(self.size - 1))
        stretched = self.combined("Mul", moved, float(self.size))
        return self.combined("Div", self.combined("Sub", stretched, 1.0), 2.0)

    def tap(self, place: Value, weight: Value | None) -> Tap:
        """Of a whole coordinate, which may lie beyond the ends."""
        if self.padding == "reflection":
            place = self._reflected(place)
        inside = self.combined("Clip", place, 0.0, float(self.size - 1))
        if self.padding == "zeros":
            is_inside = self.combined("Cast", self.combined("Equal", place, inside), to=1)
            weight = is_inside if weight is None else self.combined("Mul", weight, is_inside)
        return Tap(self.combined("Cast", inside, to=6), weight)

    def _reflected(self, place: Value) -> Value:
        first = 0.0 if self.aligned else -0.5
        span = float(self.size - 1 if self.aligned else self.size)
        if span == 0.0:
            return place
        apart = self.combined("Abs", self.combined("Sub", place, first))
        times = self.combined("Floor", self.combined("Div", apart, span))
        rest = self.combined("Sub", apart, self.combined("Mul", times, span))
        pairs = self.combined("Floor", self.combined("Mul", times, 0.5))
        odd = self.combined("Sub", times, self.combined("Mul", pairs, 2.0))  # 0 or 1
        turned = self.combined("Sub", span, self.combined("Mul", rest, 2.0))
        back = self.combined("Add", rest, self.combined("Mul", odd, turned))
        return self.combined("Add", back, first)


def _nearest(axis: _Axis, place: Value) -> list[Tap]:
    return [axis.tap(axis.combined("Round", place), None)]


def _linear(axis: _Axis, place: Value) -> list[Tap]:
    low = axis.combined("Floor", place)
    high = axis.combined("Add", low, 1.0)
    weights = (axis.combined("Sub", high, place), axis.combined("Sub", place, low))
    return [axis.tap(at, weight) for at, weight in zip((low, high), weights, strict=True)]


def _cubic(axis: _Axis, place: Value) -> list[Tap]:
    low = axis.combined("Floor", place)
    behind = axis.combined("Sub", place, low)
    before = axis.combined("Sub", 1.0, behind)
    weights = [_far(axis, behind), _near(axis, behind), _near(axis, before), _far(axis, before)]
    places = [axis.combined("Add", low, float(offset)) for offset in (-1, 0, 1, 2)]
    return [axis.tap(at, weight) for at, weight in zip(places, weights, strict=True)]


def _near(axis: _Axis, d: Value) -> Value:
    """((a + 2) d - (a + 3)) d d + 1 for a distance d of at most 1."""
    line = axis.combined("Sub", axis.combined("Mul", d, KEYS + 2), KEYS + 3)
    square = axis.combined("Mul", axis.combined("Mul", line, d), d)
    return axis.combined("Add", square, 1.0)


def _far(axis: _Axis, d: Value) -> Value:
    """((a D - 5 a) D + 8 a) D - 4 a for the distance D = d + 1."""
    far = axis.combined("Add", d, 1.0)
    line = axis.combined("Sub", axis.combined("Mul", far, KEYS), 5 * KEYS)
    square = axis.combined("Add", axis.combined("Mul", line, far), 8 * KEYS)
    return axis.combined("Sub", axis.combined("Mul", square, far), 4 * KEYS)


TAPS: Mapping[str, Callable[[_Axis, Value], list[Tap]]] = {
    "cubic": _cubic,
    "linear": _linear,
    "nearest": _nearest,
}


def grid_sample(write: Writing) -> bool:
    """Also of rows and volumes. False for unknown sizes and for more than MAX_TAPS reads."""
    x, grid = write.node.inputs[:2]
    mode = str(attribute(write.node, "mode", "linear"))
    make = TAPS[MODES.get(mode, mode)]
    if x is None or grid is None or open_dimensions(x) or open_dimensions(grid):
        return False
    sizes = shape(x)[2:]
    if {"cubic": 4, "linear": 2}.get(MODES.get(mode, mode), 1) ** len(sizes) > MAX_TAPS:
        return False
    before = set(write.graph.nodes())
    taps = [_along(write, grid, at, size, make) for at, size in enumerate(sizes)]
    chosen = [_chosen(write, shape(x), corner) for corner in product(*taps)]
    if array(grid) is not None:
        chosen = _folded(write, before, chosen)
    total, *others = _reads(write, _rows(write, x), chosen)
    for read in others:
        total = write.insert("Add", [total, read], "total")
    rank = len(sizes)
    return write.become("Transpose", [total], perm=[0, rank + 1, *range(1, rank + 1)])


def _folded(write: Writing, before: Collection[Node], taps: Sequence[Tap]) -> list[Tap]:
    """The same as constants, by one run of what was written: node by node takes seconds."""
    values = list(dict.fromkeys(value for tap in taps for value in tap if value is not None))
    written = [node for node in write.graph.nodes() if node not in before]
    results = OrtSession(part(write.graph, written, values).to_bytes()).run(None, {})
    for node in reversed(written):
        write.graph.remove(node)
    constants = {
        value: write.constant(result, "taps") for value, result in zip(values, results, strict=True)
    }
    return [Tap(constants[place], weight and constants[weight]) for place, weight in taps]


def _rows(write: Writing, x: Value) -> Value:
    """All elements of a channel along the last axis but one: (N H W, C)."""
    samples, channels, *sizes = shape(x)
    order = [0, *range(2, len(sizes) + 2), 1]
    last = write.insert("Transpose", [x], "last", perm=order)
    return write.shaped(last, (samples * prod(sizes), channels), "rows")


def _along(
    write: Writing, grid: Value, at: int, size: int, make: Callable[[_Axis, Value], list[Tap]]
) -> list[Tap]:
    """The taps of one axis; the grid's last axis begins with the last one."""
    *dims, count = shape(grid)
    axis, column = _Axis(write, at, size), count - 1 - at
    number = write.cut(grid, len(dims), column, column + 1, f"column_{at}")
    return make(axis, axis.coordinate(write.shaped(number, dims, f"grid_{at}")))


def _chosen(write: Writing, dims: Sequence[int], taps: Sequence[Tap]) -> Tap:
    """One tap per axis as one: the row that it reads, (N, ...), and its weight, (N, ..., 1)."""
    samples, _, *sizes = dims
    strides = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    place = _sum(write, [_times(write, t.place, s) for t, s in zip(taps, strides, strict=True)])
    if samples > 1:
        first = np.arange(samples, dtype=np.int32).reshape(-1, *(1,) * len(sizes)) * prod(sizes)
        place = write.insert("Add", [place, write.constant(first, "samples")], "place")
    weights = [tap.weight for tap in taps if tap.weight is not None]
    if not weights:
        return Tap(place, None)
    weight, *others = weights
    for other in others:
        weight = write.insert("Mul", [weight, other], "weight")
    last = write.constant(np.array([len(sizes) + 1]), "last")
    return Tap(place, write.insert("Unsqueeze", [weight, last], "column"))


def _reads(write: Writing, rows: Value, taps: Sequence[Tap]) -> Iterator[Value]:
    """What each tap reads, times its weight: (N, ..., C)."""
    for place, weight in taps:
        read = write.insert("Gather", [rows, place], "read", axis=0)
        yield read if weight is None else write.insert("Mul", [read, weight], "weighted")


def _times(write: Writing, index: Value, stride: int) -> Value:
    if stride == 1:
        return index
    return write.insert(
        "Mul", [index, write.constant(np.array(stride, np.int32), "stride")], "stepped"
    )


def _sum(write: Writing, values: Sequence[Value]) -> Value:
    total, *others = values
    for value in others:
        total = write.insert("Add", [total, value], "place")
    return total
