"""Writes Conv, ConvTranspose, MatMul and pools as operators of a .tflite file.

Pads other than SAME become a PAD in front of the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.clamps import clamped, refused
from npumake.compilers.dilated_pool import dilated_max
from npumake.compilers.flatfile import Fields
from npumake.compilers.tflite_builder import NHWC, Order, TFLiteBuilder, plain
from npumake.engine.litert import is_picked, is_same

SAME, VALID = 0, 1
MAX_MATMUL_AXES = 5  # of a product of two tensors


class _Window(NamedTuple):
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def _window(step: Instruction, kernel: list[int]) -> _Window:
    if len(kernel) != 2:
        raise refused(step, f"its window has {len(kernel)} dimensions")
    values = (step.attributes[name] for name in ("strides", "dilations", "pads"))
    return _Window(kernel, *values)


def _padding(window: _Window, before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    """SAME or VALID, if one of them gives the same window positions; else None."""
    if not any(window.pads):
        return VALID
    sizes = before[2:], after[2:]
    is_same_padding = is_same(
        sizes, window.kernel, window.strides, window.dilations, window.pads[:2]
    )
    return SAME if is_same_padding else None


def _input_and_padding(
    draft: TFLiteBuilder, step: Instruction, window: _Window, fill: float, written: bool = False
) -> tuple[int, int]:
    """The window's input and its padding mode. Pads other than SAME, or those to be `written`, are
    added with the code `fill`."""
    name = step.inputs[0]
    grid, index = draft.grid(name), draft.read(name, NHWC)
    padding = _padding(window, grid.shape, draft.grid(step.outputs[0]).shape)
    if padding == VALID or (padding == SAME and not written):
        return index, padding
    return _padded(draft, step, window, fill), VALID


def _padded(draft: TFLiteBuilder, step: Instruction, window: _Window, fill: float) -> int:
    """The window's input with pads of the code `fill`."""
    name = step.inputs[0]
    grid, index = draft.grid(name), draft.read(name, NHWC)
    if not any(window.pads):
        return index
    top, left, bottom, right = window.pads
    if min(window.pads) < 0:
        raise refused(step, "it has negative pads")
    around = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    shape = tuple(
        n + int(a.sum()) for n, a in zip(_ordered_shape(grid.shape, NHWC), around, strict=True)
    )
    output = draft.hidden(step.inputs[0], plain(4), f"{step.outputs[0]}_padded", shape)
    inputs = [index, draft.constant(f"{step.outputs[0]}_pads", around)]
    if fill != grid.zero_point:
        value = np.full((), fill, grid.dtype)
        draft.draw("PADV2", [*inputs, draft.constant(f"{name}_fill", value, grid)], [output])
    else:
        draft.draw("PAD", inputs, [output])
    return output


def _ordered_shape(shape: tuple[int, ...], order: Order) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in order)


def conv(draft: TFLiteBuilder, step: Instruction) -> None:
    weight = _int8(step, step.constants["weight"])
    outputs, depth = weight.shape[:2]
    group = step.attributes["group"]
    window = _window(step, list(weight.shape[2:]))
    index, padding = _input_and_padding(draft, step, window, draft.grid(step.inputs[0]).zero_point)
    is_depthwise = depth == 1 and group > 1
    kind = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
    filters, axis = (weight.transpose(1, 2, 3, 0), 3) if is_depthwise else (_ohwi(weight), 0)
    read = [index, *_weights(draft, step, np.ascontiguousarray(filters), axis, outputs)]
    (height, width), (down, right) = window.strides, window.dilations

    def options(activation: int) -> Fields:
        common: dict[int, tuple[str, int]] = {0: ("b", padding), 1: ("i", width), 2: ("i", height)}
        if is_depthwise:
            operands = {3: ("i", outputs // group), 4: ("b", activation), 5: ("i", right)}
            return {**common, **operands, 6: ("i", down)}
        return {**common, 3: ("b", activation), 4: ("i", right), 5: ("i", down)}

    clamped(draft, step, kind, read, NHWC, options)


def _ohwi(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(0, 2, 3, 1)


def _int8(step: Instruction, weight: np.ndarray) -> np.ndarray:
    if weight.dtype == np.float32:
        return weight
    if weight.min(initial=0) < -128 or weight.max(initial=0) > 127:
        raise refused(step, "its weights without their zero point do not fit int8")
    return weight.astype(np.int8)


def _weights(
    draft: TFLiteBuilder, step: Instruction, weight: np.ndarray, axis: int, channels: int
) -> list[int]:
    """Weights and bias; the bias is on the accumulator's grid and defaults to zeros. Both are float
    for a node left in float."""
    name = step.outputs[0]
    bias = np.broadcast_to(step.constants.get("bias", np.zeros(1, np.int32)), (channels,))
    if weight.dtype == np.float32:
        real = bias.astype(np.float32)
        return [draft.constant(f"{name}_weight", weight), draft.constant(f"{name}_bias", real)]
    scale = draft.scales(step).astype(np.float32).reshape(-1)
    read = draft.grid(step.inputs[0])
    wide = np.int64 if read.dtype == "int16" else np.int32
    return [
        draft.weight(f"{name}_weight", weight, scale, axis),
        draft.weight(f"{name}_bias", bias.astype(wide), scale * np.float32(read.scale or 1.0), 0),
    ]


def matmul(draft: TFLiteBuilder, step: Instruction) -> None:
    left, rank = step.inputs[0], len(draft.grid(step.inputs[0]).shape)
    out = plain(len(draft.grid(step.outputs[0]).shape))
    if "weight" not in step.constants:
        if len(out) > MAX_MATMUL_AXES:
            raise refused(step, f"it has {len(out)} axes")
        read = [draft.read(name, plain(len(draft.grid(name).shape))) for name in step.inputs]
        clamped(draft, step, "BATCH_MATMUL", read, out, {})
        return
    weight = np.ascontiguousarray(_int8(step, step.constants["weight"]).T)
    read = [draft.read(left, plain(rank)), *_weights(draft, step, weight, 0, len(weight))]
    clamped(
        draft,
        step,
        "FULLY_CONNECTED",
        read,
        out,
        lambda activation: {0: ("b", activation), 2: ("?", rank > 2)},
    )


def conv_transpose(draft: TFLiteBuilder, step: Instruction) -> None:
    """Begin pads other than SAME are cropped behind it; end pads only set the size."""
    weight = _int8(step, step.constants["weight"])
    window, after = _window(step, list(weight.shape[2:])), draft.grid(step.outputs[0]).shape
    filters = np.ascontiguousarray(weight.transpose(1, 2, 3, 0))
    before = draft.grid(step.inputs[0]).shape
    axes = zip(before[2:], after[2:], window.pads[:2], window.kernel, window.strides, strict=True)
    sides = [_spread(*axis) for axis in axes]
    is_same = all(side.is_same for side in sides)
    begin = [0, 0] if is_same else window.pads[:2]
    whole = after if is_same else (*after[:2], *(side.whole for side in sides))
    size = draft.constant(
        f"{step.outputs[0]}_size", np.array(_ordered_shape(whole, NHWC), np.int32)
    )
    kernel, bias = _weights(draft, step, filters, 0, weight.shape[1])
    read = [size, kernel, draft.read(step.inputs[0], NHWC), bias]
    height, width = window.strides
    padding = SAME if is_same else VALID
    strides: Fields = {0: ("b", padding), 1: ("i", width), 2: ("i", height)}
    if whole == after:
        clamped(draft, step, "TRANSPOSE_CONV", read, NHWC, strides)
        return
    whole_output = draft.hidden(step.outputs[0], NHWC, f"{step.outputs[0]}_whole", whole)
    draft.draw("TRANSPOSE_CONV", read, [whole_output], strides)
    _picked(draft, step, whole_output, begin, [1, 1])


class _Spread(NamedTuple):
    """One axis: whether SAME gives its positions, and its length before cropping."""

    is_same: bool
    whole: int


def _spread(n: int, out: int, begin: int, kernel: int, stride: int) -> _Spread:
    cut = max((n - 1) * stride + kernel - out, 0) // 2
    is_same = out == n * stride and begin == cut  # Vela leaves other sizes to the CPU
    return _Spread(is_same, max((n - 1) * stride + kernel, begin + out))


def _picked(
    draft: TFLiteBuilder, step: Instruction, index: int, begin: list[int], by: list[int]
) -> None:
    """Every `by`-th row and column from `begin` on, up to the output's size."""
    after = draft.grid(step.outputs[0]).shape
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, after[2:], by, strict=True)]
    spans = {"begin": [0, *begin, 0], "end": [after[0], *ends, after[1]], "by": [1, *by, 1]}
    bounds = [
        draft.constant(f"{step.outputs[0]}_{role}", np.array(numbers, np.int32))
        for role, numbers in spans.items()
    ]
    clamped(draft, step, "STRIDED_SLICE", [index, *bounds], NHWC, {})


def pooled(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    def draw(draft: TFLiteBuilder, step: Instruction) -> None:
        window = _window(step, step.attributes["kernel"])
        if kind == "AVERAGE_POOL_2D" and _is_picked(draft, step, window):
            _averaged_and_picked(draft, step, window)
            return
        if any(dilation > 1 for dilation in window.dilations):
            if kind == "AVERAGE_POOL_2D":
                raise refused(step, "its window is dilated")
            fill = _lowest(draft.grid(step.inputs[0]).dtype)
            dilated_max(draft, step, _padded(draft, step, window, fill))
            return
        grid = draft.grid(step.inputs[0])
        averages = kind == "AVERAGE_POOL_2D"
        fill = grid.zero_point if averages else _lowest(grid.dtype)
        counted = averages and step.constants["count"].min() == math.prod(window.kernel)
        index, padding = _input_and_padding(draft, step, window, fill, written=counted)
        if averages and not counted and padding == VALID:
            raise refused(step, f"it averages with uncounted pads of {window.pads}")
        (height, width), (down, right) = window.strides, window.kernel

        def options(activation: int) -> Fields:
            strides: Fields = {0: ("b", padding), 1: ("i", width), 2: ("i", height)}
            return {**strides, 3: ("i", right), 4: ("i", down), 5: ("b", activation)}

        clamped(draft, step, kind, [index], NHWC, options)

    return draw


def _lowest(dtype: str) -> float:
    """The type's smallest value, the neutral element of a maximum."""
    is_float = np.dtype(dtype).kind == "f"
    return float(np.finfo(dtype).min) if is_float else float(np.iinfo(dtype).min)


def _is_picked(draft: TFLiteBuilder, step: Instruction, window: _Window) -> bool:
    """Whether the average has uncounted pads and those of SAME with stride 1 begin equally. It is
    then that average, reduced to the needed rows and columns."""
    before, after = draft.grid(step.inputs[0]).shape, draft.grid(step.outputs[0]).shape
    counted = step.constants["count"].min() == math.prod(window.kernel)
    if counted or max(window.dilations) > 1 or _padding(window, before, after) is not None:
        return False
    return is_picked((before[2:], after[2:]), window.kernel, window.strides, window.pads[:2])


def _averaged_and_picked(draft: TFLiteBuilder, step: Instruction, window: _Window) -> None:
    name, (down, right) = step.inputs[0], window.kernel
    averages = draft.hidden(name, NHWC, f"{step.outputs[0]}_all")
    every: Fields = {0: ("b", SAME), 1: ("i", 1), 2: ("i", 1), 3: ("i", right), 4: ("i", down)}
    draft.draw("AVERAGE_POOL_2D", [draft.read(name, NHWC)], [averages], every)
    _picked(draft, step, averages, [0, 0], window.strides)
