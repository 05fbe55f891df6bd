"""Operators on images: they read and return channels-first.

SAME pads so that out = ceil(in / stride), with the odd element at the end:

    total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - in)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from npumake.frontends.tflite.draft import TO_NCHW, GraphDraft
from npumake.frontends.tflite.flatbuffer import FlatTable, MalformedError
from npumake.frontends.tflite.schema import TFLiteOperator, TFLiteTensor
from npumake.frontends.tflite.tensors import bias_on, integers, real, turned, values_of
from npumake.graph import Value

SAME, VALID = 0, 1
MAX_WINDOW_SIZE = 2**16  # stride, dilation or window; larger ones are damage


def conv_2d(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """Weights (O, H, W, I) -> (O, I, H, W)."""
    weight = operator.input(1)
    _convolved(draft, operator, turned(weight, TO_NCHW), _groups(operator.input(0), weight), 3)


def depthwise_conv_2d(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """Weights (1, H, W, C * multiplier) -> (C * multiplier, 1, H, W), one group per channel."""
    weight = turned(operator.input(1), (3, 0, 1, 2))
    _convolved(draft, operator, weight, _whole(operator.input(0))[3], 4)


def transpose_conv(draft: GraphDraft, operator: TFLiteOperator) -> None:
    options, bias = operator.options, operator.optional(3)
    fused = options.scalar(3, "b", 0)
    _turned_conv(draft, operator, operator.input(2), bias, _strides(options, 1), fused)


def transpose_conv_bias(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """MediaPipe's operator: image, weights, bias. Options are int32: padding, then width and height
    of the stride. Source: mediapipe/util/tflite/operations/transpose_conv_bias.cc."""
    numbers = np.frombuffer(operator.custom, "<i4", len(operator.custom) // 4)
    if len(numbers) != 3:
        raise MalformedError(f"{operator.type} has {len(operator.custom)} bytes of options")
    strides = [_small(int(size)) for size in numbers[:0:-1]]
    _turned_conv(draft, operator, operator.input(0), operator.optional(2), strides, 0)


def _turned_conv(
    draft: GraphDraft,
    operator: TFLiteOperator,
    x: TFLiteTensor,
    bias: TFLiteTensor | None,
    strides: Sequence[int],
    activation: int,
) -> None:
    """Weights (O, H, W, I) -> (I, O, H, W). The output's shape determines the pads."""
    output, weight = operator.output, turned(operator.input(1), (3, 0, 1, 2))
    excess = [
        (n - 1) * s + k - m
        for n, s, k, m in zip(_size(x), strides, weight.shape[2:], _size(output), strict=True)
    ]
    begin = [max(total, 0) // 2 for total in excess]
    end = [max(total, 0) - half for total, half in zip(excess, begin, strict=True)]
    value = draft.node(
        "ConvTranspose",
        _operands(draft, x, weight, bias),
        output.name,
        strides=strides,
        pads=begin + end,
        output_padding=[max(-total, 0) for total in excess],
    )
    draft.give_first(output, value, activation)


def pooled(op_type: str) -> Callable[[GraphDraft, TFLiteOperator], None]:
    def pool(draft: GraphDraft, operator: TFLiteOperator) -> None:
        options, x = operator.options, operator.input(0)
        kernel, strides = _window(options, 3), _strides(options, 1)
        value = draft.node(
            op_type,
            [draft.first(x)],
            operator.output.name,
            kernel_shape=kernel,
            strides=strides,
            pads=_pads(options, _size(x), kernel, strides, (1, 1)),
        )
        draft.give_first(operator.output, value, options.scalar(5, "b", 0))

    return pool


def resized(mode: str, flags: int) -> Callable[[GraphDraft, TFLiteOperator], None]:
    """`flags` is the field of align_corners; half_pixel_centers is the next."""

    def resize(draft: GraphDraft, operator: TFLiteOperator) -> None:
        align, half = (operator.options.scalar(flags + n, "?", False) for n in (0, 1))
        x, output = operator.input(0), operator.output
        sizes = [*_whole(x)[:1], _whole(x)[3], *integers(operator.input(1))]
        where = "align_corners" if align else "half_pixel" if half else "asymmetric"
        value = draft.node(
            "Resize",
            [draft.first(x), None, None, draft.parameter(f"{output.name}_size", sizes, "int64")],
            output.name,
            mode=mode,
            coordinate_transformation_mode=where,
            nearest_mode="floor" if where == "asymmetric" else "round_prefer_ceil",
        )
        draft.give_first(output, value)

    return resize


def rearranged(op_type: str) -> Callable[[GraphDraft, TFLiteOperator], None]:
    def rearrange(draft: GraphDraft, operator: TFLiteOperator) -> None:
        size = operator.options.scalar(0, "i", 0)
        value = draft.node(
            op_type, [draft.first(operator.input(0))], operator.output.name, blocksize=size
        )
        draft.give_first(operator.output, value)

    return rearrange


def pad(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """PAD and PADV2: zeros, or a constant fill."""
    filler = operator.optional(2)
    filled = None if filler is None else float(values_of(real(filler)).reshape(-1)[0])
    _padded(draft, operator, "constant", filled)


def mirror_pad(draft: GraphDraft, operator: TFLiteOperator) -> None:
    if operator.options.scalar(0, "b", 0):
        raise MalformedError("MIRROR_PAD in mode SYMMETRIC has no counterpart in ONNX")
    _padded(draft, operator, "reflect", None)


def _padded(draft: GraphDraft, operator: TFLiteOperator, mode: str, filled: float | None) -> None:
    x, output = operator.input(0), operator.output
    pads, rank = integers(operator.input(1)), len(x.shape)
    if len(pads) != 2 * rank:
        raise MalformedError(f"{operator.type} names {len(pads)} pads for rank {rank}")
    order = TO_NCHW if rank == 4 else tuple(range(rank))
    ordered_pads = [pads[2 * axis + end] for end in (0, 1) for axis in order]
    inputs = [
        draft.first(x) if rank == 4 else draft.own(x),
        draft.parameter(f"{output.name}_pads", ordered_pads, "int64"),
        None if filled is None else draft.parameter(f"{output.name}_filled", filled, "float32"),
    ]
    value = draft.node("Pad", inputs, output.name, mode=mode)
    give = draft.give_first if rank == 4 else draft.give
    give(output, value)


def _convolved(
    draft: GraphDraft, operator: TFLiteOperator, weight: TFLiteTensor, groups: int, activation: int
) -> None:
    """`activation` is the index of its option; the dilations follow."""
    x, output, options = operator.input(0), operator.output, operator.options
    kernel, strides = weight.shape[2:], _strides(options, 1)
    dilations = _window(options, activation + 1)
    value = draft.node(
        "Conv",
        _operands(draft, x, weight, operator.optional(2)),
        output.name,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=_pads(options, _size(x), kernel, strides, dilations),
        group=groups,
    )
    draft.give_first(output, value, options.scalar(activation, "b", 0))


def _operands(
    draft: GraphDraft, x: TFLiteTensor, weight: TFLiteTensor, bias: TFLiteTensor | None
) -> list[Value]:
    return [draft.first(x), *weights(draft, x, weight, bias)]


def weights(
    draft: GraphDraft, x: TFLiteTensor, weight: TFLiteTensor, bias: TFLiteTensor | None
) -> list[Value]:
    """Weight and bias: codes if the input and the weight are quantized, else floats."""
    if x.grid is None or weight.grid is None:
        return [draft.own(real(tensor)) for tensor in (weight, bias) if tensor is not None]
    biases = [] if bias is None else [bias_on(bias, x.grid, weight.grid)]
    return [draft.own(tensor) for tensor in (weight, *biases)]


def _groups(x: TFLiteTensor, weight: TFLiteTensor) -> int:
    """The number of groups, from the channels that a filter reads."""
    depth = weight.shape[-1] if weight.shape else 0
    if len(x.shape) != 4 or not depth or x.shape[3] % depth:
        raise MalformedError(f"the weight `{weight.name}` does not fit the channels of `{x.name}`")
    return x.shape[3] // depth


def _strides(options: FlatTable, field: int) -> list[int]:
    """(height, width); the schema stores the width first."""
    return [_small(options.scalar(field + n, "i", 0)) for n in (1, 0)]


def _window(options: FlatTable, field: int) -> list[int]:
    """Dilations or a pool's window; 1 if absent."""
    return [_small(options.scalar(field + n, "i", 1)) for n in (1, 0)]


def _small(size: int) -> int:
    if not 0 < size <= MAX_WINDOW_SIZE:
        raise MalformedError(f"a stride, dilation or window of {size}")
    return size


def _pads(
    options: FlatTable,
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    if options.scalar(0, "b", SAME) == VALID:
        return [0, 0, 0, 0]
    begin, end = [], []
    for n, k, s, d in zip(size, kernel, strides, dilations, strict=True):
        total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        begin.append(total // 2)
        end.append(total - total // 2)
    return begin + end


def _whole(tensor: TFLiteTensor) -> tuple[int, ...]:
    if len(tensor.shape) != 4:
        raise MalformedError(f"tensor `{tensor.name}` is not an image of rank 4")
    return tensor.shape


def _size(tensor: TFLiteTensor) -> tuple[int, ...]:
    return _whole(tensor)[1:3]
