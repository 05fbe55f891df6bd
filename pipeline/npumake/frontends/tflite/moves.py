"""Operators that only move values: reshapes, slices, concatenations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from npumake.frontends.tflite.draft import GraphDraft
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import TFLiteOperator, TFLiteTensor
from npumake.frontends.tflite.tensors import integers
from npumake.graph import Value

END = 2**31 - 1  # beyond every axis


def reshape(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS, from the output's shape."""
    source, output = operator.input(0), operator.output
    if source.shape and output.shape and math.prod(source.shape) != math.prod(output.shape):
        raise MalformedError(
            f"{operator.type} cannot make {list(output.shape)} of {list(source.shape)}"
        )
    draft.give(output, draft.reshaped(draft.own(source), output.shape, output.name))


def transpose(draft: GraphDraft, operator: TFLiteOperator) -> None:
    order = integers(operator.input(1))
    value = draft.node(
        "Transpose", [draft.own(operator.input(0))], operator.output.name, perm=order
    )
    draft.give(operator.output, value)


def concatenation(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    read = [draft.own(operator.input(n)) for n in range(len(operator.inputs))]
    axis, fused = operator.options.scalar(0, "i", 0), operator.options.scalar(1, "b", 0)
    draft.give(output, draft.node("Concat", read, output.name, axis=axis), fused)


def pack(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    axis = operator.options.scalar(1, "i", 0) % max(len(output.shape), 1)
    shape = [1 if index == axis else size for index, size in enumerate(output.shape)]
    read = [
        draft.reshaped(draft.own(operator.input(n)), shape, f"{output.name}_part")
        for n in range(len(operator.inputs))
    ]
    draft.give(output, draft.node("Concat", read, output.name, axis=axis))


def unpack(draft: GraphDraft, operator: TFLiteOperator) -> None:
    x = operator.input(0)
    axis = operator.options.scalar(1, "i", 0) % max(len(x.shape), 1)
    for index, output in enumerate(operator.outputs):
        part = sliced(draft, x, [(axis, index, index + 1, 1)], f"{output.name}_part")
        draft.give(output, draft.reshaped(part, output.shape, output.name))


def split(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """SPLIT has the axis first, SPLIT_V last; the outputs' shapes give the cuts."""
    axis_at, x_at = (0, 1) if operator.type == "SPLIT" else (2, 0)
    x = operator.input(x_at)
    axis, begin = integers(operator.input(axis_at))[0] % max(len(x.shape), 1), 0
    for output in operator.outputs:
        end = begin + (output.shape[axis] if axis < len(output.shape) else 0)
        draft.give(output, sliced(draft, x, [(axis, begin, end, 1)], output.name))
        begin = end


def slice_(draft: GraphDraft, operator: TFLiteOperator) -> None:
    begins, sizes = integers(operator.input(1)), integers(operator.input(2))
    spans = [
        (axis, begin, END if size < 0 else begin + size, 1)
        for axis, (begin, size) in enumerate(zip(begins, sizes, strict=False))
    ]
    draft.give(operator.output, sliced(draft, operator.input(0), spans, operator.output.name))


def strided_slice(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """A mask bit per axis: an open bound, or an axis to remove."""
    x, output = operator.input(0), operator.output
    open_begin, open_end, ellipsis, new, shrunk = (
        operator.options.scalar(field, "i", 0) for field in range(5)
    )
    if ellipsis or new:
        raise MalformedError("STRIDED_SLICE with an ellipsis or a new axis is not supported yet")
    bounds = [integers(operator.input(n)) for n in (1, 2, 3)]
    spans = []
    for axis, (begin, end, step) in enumerate(zip(*bounds, strict=False)):
        bit = 1 << axis
        if shrunk & bit:
            begin, end, step = begin, (begin + 1) or END, 1
        elif open_begin & bit:
            begin = 0 if step > 0 else END
        if open_end & bit and not shrunk & bit:
            end = END if step > 0 else -END
        spans.append((axis, begin, end, step))
    value = sliced(draft, x, spans, f"{output.name}_part" if shrunk else output.name)
    draft.give(output, draft.reshaped(value, output.shape, output.name) if shrunk else value)


def sliced(
    draft: GraphDraft, x: TFLiteTensor, spans: Sequence[tuple[int, int, int, int]], name: str
) -> Value:
    """Along each (axis, begin, end, step), as Python slices."""
    columns = zip(*((begin, end, axis, step) for axis, begin, end, step in spans), strict=True)
    roles = ("begins", "ends", "axes", "steps")
    parameters = [
        draft.parameter(f"{name}_{role}", column, "int64")
        for role, column in zip(roles, columns, strict=True)
    ]
    return draft.node("Slice", [draft.own(x), *parameters], name)


def gather(draft: GraphDraft, operator: TFLiteOperator) -> None:
    axis, batched = (operator.options.scalar(field, "i", 0) for field in (0, 1))
    if batched:
        raise MalformedError("GATHER with batch dimensions is not supported yet")
    read = [draft.own(operator.input(n)) for n in (0, 1)]
    draft.give(operator.output, draft.node("Gather", read, operator.output.name, axis=axis))


def tile(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    times = draft.parameter(f"{output.name}_times", integers(operator.input(1)), "int64")
    draft.give(output, draft.node("Tile", [draft.own(operator.input(0)), times], output.name))


def broadcast(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    shape = draft.parameter(f"{output.name}_shape", output.shape, "int64")
    draft.give(output, draft.node("Expand", [draft.own(operator.input(0)), shape], output.name))


def space_to_batch(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """(N, H * a, W * b, C) -> (a * b * N, H, W, C), after zero padding."""
    x, output = operator.input(0), operator.output
    (a, b), pads = _blocks(operator)
    n, h, w, c = (*output.shape, 0, 0, 0, 0)[:4]
    ordered_pads = [0, pads[0], pads[2], 0, 0, pads[1], pads[3], 0]
    padded = [draft.own(x), draft.parameter(f"{output.name}_pads", ordered_pads, "int64")]
    value = draft.node("Pad", padded, f"{output.name}_padded")
    value = draft.reshaped(value, (n // (a * b), h, a, w, b, c), f"{output.name}_blocks")
    value = draft.node("Transpose", [value], f"{output.name}_sorted", perm=(2, 4, 0, 1, 3, 5))
    draft.give(output, draft.reshaped(value, output.shape, output.name))


def batch_to_space(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """(a * b * N, H, W, C) -> (N, H * a, W * b, C), then cropped."""
    x, output = operator.input(0), operator.output
    (a, b), crops = _blocks(operator)
    n, h, w, c = (*x.shape, 0, 0, 0, 0)[:4]
    n //= a * b
    value = draft.reshaped(draft.own(x), (a, b, n, h, w, c), f"{output.name}_blocks")
    value = draft.node("Transpose", [value], f"{output.name}_sorted", perm=(2, 3, 0, 4, 1, 5))
    value = draft.reshaped(value, (n, h * a, w * b, c), f"{output.name}_whole")
    bounds = [[crops[0], crops[2]], [h * a - crops[1], w * b - crops[3]], [1, 2]]
    spans = [draft.parameter(f"{output.name}_crop", bound, "int64") for bound in bounds]
    draft.give(output, draft.node("Slice", [value, *spans], output.name))


def _blocks(operator: TFLiteOperator) -> tuple[list[int], list[int]]:
    blocks, borders = integers(operator.input(1)), integers(operator.input(2))
    if len(blocks) != 2 or len(borders) != 4 or min(blocks) < 1:
        raise MalformedError(f"{operator.type} is supported for images of rank 4")
    return blocks, borders
