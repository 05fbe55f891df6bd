"""Rewrites a .tflite model into operators that the TOSA converter translates correctly.

Each row of SPELLINGS replaces an operator that tosa-converter-for-tflite (2026.2.0) translates
wrongly or not at all. The replacements compute the same codes in TensorFlow Lite, so the model
stays correct when a later converter fixes them.

QUANTIZE of floats       becomes a cast to int8, which wraps where TensorFlow Lite saturates
                         -> MAXIMUM and MINIMUM in front, at the ends of the grid
CAST of codes to int32   subtracts the zero point, where TensorFlow Lite casts the code
                         -> QUANTIZE to int16 with zero point 0, CAST, ADD of the zero point
CAST of floats           rounds to the nearest integer, where TensorFlow Lite truncates
                         -> FLOOR of each sign's magnitude in front
RESIZE_NEAREST_NEIGHBOR  TOSA rounds to the nearest index, TensorFlow Lite down (tensorflow#62386)
                         -> TILE where each input is read k times, else a GATHER along the axis
RESIZE_BILINEAR          TOSA uses exact coordinates, TensorFlow Lite and our engine multiples of
                         1/1024, whose rounding adds up along the axis
                         -> both neighbors by GATHER, weighted in int32
STRIDED_SLICE backwards  returns one element along the axis, or crashes the compiler
                         -> REVERSE_V2, and a STRIDED_SLICE forwards
PADV2                    is refused unless its fill is a scalar
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from npumake.compilers.flatfile import FileOperator, FlatModel
from npumake.compilers.respelling import Sheet, Spelling, as_numbers, respelled
from npumake.compilers.tosa_resizes import bilinear, nearest

INTEGERS = ("int8", "int16", "int32", "int64")


def quantize(sheet: Sheet, operator: FileOperator) -> None:
    (index,), (output,) = operator.inputs, operator.outputs
    grid = sheet.tensors[output]
    if sheet.tensors[index].dtype == "float32":
        limits = np.iinfo(grid.dtype)
        for kind, end in (("MAXIMUM", limits.min), ("MINIMUM", limits.max)):
            bound = np.float32(grid.scale[0]) * (end - grid.zero_point)
            number = sheet.constant(np.full((1,), bound, np.float32))
            index = sheet.draw(kind, [index, number], sheet.like(index))
    sheet.keep(replace(operator, inputs=(index,)))


def cast(sheet: Sheet, operator: FileOperator) -> None:
    (index,), (output,) = operator.inputs, operator.outputs
    if len(sheet.tensors[index].scale) and sheet.tensors[output].dtype == "int32":
        as_numbers(sheet, index, output)
    elif sheet.tensors[index].dtype == "float32" and sheet.tensors[output].dtype in INTEGERS:
        sheet.keep(replace(operator, inputs=(_truncated(sheet, index),)))
    else:
        sheet.keep(operator)


def _truncated(sheet: Sheet, index: int) -> int:
    """floor(max(x, 0)) - floor(max(-x, 0))"""

    def draw(kind: str, *read: int) -> int:
        options = {0: ("b", 0)} if kind == "SUB" else None
        return sheet.draw(kind, read, sheet.like(index), options)

    above, below = (draw("FLOOR", draw("RELU", side)) for side in (index, draw("NEG", index)))
    return draw("SUB", above, below)


def strided_slice(sheet: Sheet, operator: FileOperator) -> None:
    index, *spans = operator.inputs
    begin, end, by = (sheet.values(span).tolist() for span in spans)
    backwards = [axis for axis, step in enumerate(by) if step < 0]
    if not backwards:
        sheet.keep(operator)
        return
    shape, open_ends = sheet.tensors[index].shape, int(operator.options[1][1])
    for axis in backwards:
        last = shape[axis] - 1
        is_open = open_ends >> axis & 1
        begin[axis], by[axis] = last - begin[axis], -by[axis]
        end[axis] = shape[axis] if is_open else last - end[axis]
        open_ends &= ~(1 << axis)
    turned = sheet.draw("REVERSE_V2", [index, sheet.numbers(backwards)], sheet.like(index))
    numbers = [sheet.numbers(tensor) for tensor in (begin, end, by)]
    options = {**operator.options, 1: ("i", open_ends)}
    sheet.draw("STRIDED_SLICE", [turned, *numbers], operator.outputs[0], options)


def pad_with(sheet: Sheet, operator: FileOperator) -> None:
    *read, number = operator.inputs
    tensor, values = sheet.tensors[number], sheet.values(number)
    scalar = sheet.add(replace(tensor, shape=(), values=values.reshape(())))
    sheet.keep(replace(operator, inputs=(*read, scalar)))


SPELLINGS: Mapping[str, Spelling] = {
    "CAST": cast,
    "PADV2": pad_with,
    "QUANTIZE": quantize,
    "RESIZE_BILINEAR": bilinear,
    "RESIZE_NEAREST_NEIGHBOR": nearest,
    "STRIDED_SLICE": strided_slice,
}


def for_tosa(model: FlatModel) -> FlatModel:
    """The rewritten model: same inputs, outputs and codes."""
    return respelled(model, SPELLINGS)
