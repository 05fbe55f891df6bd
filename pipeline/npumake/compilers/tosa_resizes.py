"""Resizes as TensorFlow Lite computes them, in operators with the same meaning in TOSA.

nearest     y[i] = x[read[i]]: TILE of a new axis of size 1, else GATHER
bilinear    y = round(2^-20 sum of w[i] w[j] x[i, j]), half away from zero, w in units of 2^-10
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.compilers.flatfile import Fields, FileOperator
from npumake.compilers.resizes import ALIGNED, HALF_PIXEL, NEITHER, READ
from npumake.compilers.respelling import Sheet, as_codes, as_numbers
from npumake.kernels import gemmlowp

ROWS, COLUMNS = 1, 2  # axes of an NHWC image
SPREAD = (ROWS, COLUMNS)
COORDINATES = {ALIGNED: "align_corners", HALF_PIXEL: "half_pixel", NEITHER: "asymmetric"}


def nearest(sheet: Sheet, operator: FileOperator) -> None:
    (index, _), (output,) = operator.inputs, operator.outputs
    before, after = sheet.tensors[index].shape, sheet.tensors[output].shape
    places = {axis: _places(_flags(operator, 0), before[axis], after[axis]) for axis in SPREAD}
    times = {axis: _times(places[axis], before[axis]) for axis in SPREAD}
    if any(factor > 1 for factor in times.values()):
        index = _tiled(sheet, index, times)
    for axis in SPREAD:
        if not times[axis]:
            index = _at(sheet, index, axis, places[axis])
    sheet.draw("RESHAPE", [index, sheet.numbers(after)], output)


def _places(flags: tuple[bool, bool], before: int, after: int) -> list[int]:
    """The input index of each output; the writer only emits the flags in READ."""
    places = READ[flags](before, after)
    assert places is not None
    return places


def _flags(operator: FileOperator, first: int) -> tuple[bool, bool]:
    return bool(operator.options[first][1]), bool(operator.options[first + 1][1])


def _times(places: Sequence[int], size: int) -> int:
    """How often each input repeats; 0 if the repeats differ."""
    times = len(places) // size
    return times if list(places) == [at // times for at in range(size * times)] else 0


def _tiled(sheet: Sheet, index: int, times: Mapping[int, int]) -> int:
    samples, height, width, channels = sheet.tensors[index].shape
    down, right = (max(times[axis], 1) for axis in SPREAD)
    apart, tiles = (samples * height, 1, width, 1, channels), (1, down, 1, right, 1)
    spread = tuple(n * m for n, m in zip(apart, tiles, strict=True))
    rows = sheet.draw("RESHAPE", [index, sheet.numbers(apart)], sheet.like(index, apart))
    tiled = sheet.draw("TILE", [rows, sheet.numbers(tiles)], sheet.like(index, spread))
    whole = (samples, height * down, width * right, channels)
    return sheet.draw("RESHAPE", [tiled, sheet.numbers(whole)], sheet.like(index, whole))


def _at(sheet: Sheet, index: int, axis: int, places: Sequence[int]) -> int:
    shape = list(sheet.tensors[index].shape)
    shape[axis] = len(places)
    read = [index, sheet.numbers(places)]
    return sheet.draw("GATHER", read, sheet.like(index, shape), {0: ("i", axis)})


class _Sums(NamedTuple):
    """Arithmetic in int32."""

    sheet: Sheet

    def binary(self, kind: str, left: int, right: int) -> int:
        fused: Fields = {} if kind in ("MAXIMUM", "MINIMUM") else {0: ("b", 0)}
        return self.sheet.draw(kind, [left, right], self.sheet.like(left), fused)

    def number(self, kind: str, left: int, number: int) -> int:
        return self.binary(kind, left, self.sheet.numbers([number]))

    def weighed(self, index: int, axis: int, places: np.ndarray, weights: np.ndarray) -> int:
        pixels = _at(self.sheet, index, axis, places.tolist())
        kernel = weights.astype(np.int32).reshape([1 if at != axis else -1 for at in range(4)])
        return self.binary("MUL", pixels, self.sheet.constant(kernel))

    def halved(self, index: int, unit: int) -> int:
        """index / unit, half away from zero, since DIV truncates."""
        sides = (("MAXIMUM", unit // 2), ("MINIMUM", -unit // 2))
        above, below = (
            self.number("DIV", self.number("ADD", self.number(side, index, 0), half), unit)
            for side, half in sides
        )
        return self.binary("ADD", above, below)


def bilinear(sheet: Sheet, operator: FileOperator) -> None:
    """A float Resize is kept: TOSA computes it as TensorFlow Lite does."""
    (index, _), (output,) = operator.inputs, operator.outputs
    codes, after = sheet.tensors[index], sheet.tensors[output].shape
    if codes.dtype != "int8":
        sheet.keep(operator)
        return
    sums, mode = _Sums(sheet), COORDINATES[_flags(operator, 2)]
    total = sheet.like(index, dtype="int32", scale=(), zero_point=0)
    as_numbers(sheet, index, total)
    for axis in SPREAD:
        low, high, weight = gemmlowp.linear_taps(codes.shape[axis], after[axis], mode)
        below = sums.weighed(total, axis, low, (1 << gemmlowp.LINEAR_BITS) - weight)
        total = sums.binary("ADD", below, sums.weighed(total, axis, high, weight))
    as_codes(sheet, sums.halved(total, 1 << 2 * gemmlowp.LINEAR_BITS), output)
