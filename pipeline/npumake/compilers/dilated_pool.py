"""A dilated maximum pool as the maximum of slices, one per window element: first along rows, then
along columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.clamps import regrid
from npumake.compilers.tflite_builder import NHWC, TFLiteBuilder, plain


class _Taps(NamedTuple):
    """A window along one axis, at `size` positions."""

    elements: int
    stride: int
    dilation: int
    size: int


def dilated_max(draft: TFLiteBuilder, step: Instruction, index: int) -> None:
    """The maximum over the tensor `index`, NHWC with its padding already added."""
    after = draft.grid(step.outputs[0]).shape
    roles = (step.attributes[role] for role in ("kernel", "strides", "dilations"))
    for axis, taps in zip((1, 2), zip(*roles, after[2:], strict=True), strict=True):
        index = _largest_along(draft, step, index, axis, _Taps(*taps))
    regrid(draft, step, index, NHWC)


def _largest_along(
    draft: TFLiteBuilder, step: Instruction, index: int, axis: int, taps: _Taps
) -> int:
    shape, largest = list(draft.tensors[index].shape), index
    shape[axis] = taps.size
    for number in range(taps.elements):
        called = f"{step.outputs[0]}_{axis}_{number}"
        part = _slice(draft, step, index, called, (axis, number, taps))
        if number:
            pooled = draft.hidden(step.inputs[0], plain(4), f"{called}_largest", shape)
            draft.draw("MAXIMUM", [largest, part], [pooled])
            part = pooled
        largest = part
    return largest


def _slice(
    draft: TFLiteBuilder, step: Instruction, index: int, called: str, where: tuple[int, int, _Taps]
) -> int:
    """Element `number` of every window along `axis`."""
    axis, number, taps = where
    begin, end, by = [0] * 4, list(draft.tensors[index].shape), [1] * 4
    begin[axis], by[axis] = number * taps.dilation, taps.stride
    end[axis] = begin[axis] + (taps.size - 1) * taps.stride + 1
    bounds = [
        draft.constant(f"{called}_{role}", np.array(numbers, np.int32))
        for role, numbers in (("begin", begin), ("end", end), ("by", by))
    ]
    shape = list(draft.tensors[index].shape)
    shape[axis] = taps.size
    output = draft.hidden(step.inputs[0], plain(4), called, shape)
    draft.draw("STRIDED_SLICE", [index, *bounds], [output])
    return output
