"""Operators on arrays of any rank: elementwise, products, reductions, and what moves values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pipeline.frontends.tflite.draft import Draft
from pipeline.frontends.tflite.flatbuffer import Malformed
from pipeline.frontends.tflite.images import weights
from pipeline.frontends.tflite.schema import TYPES, Operator, Tensor
from pipeline.frontends.tflite.tensors import integers, real, spread
from pipeline.graph import Value

Drawer = Callable[[Draft, Operator], None]
END = 2**31 - 1  # beyond every axis


# -- elementwise ---------------------------------------------------------------------------


def unary(*op_types: str, activation: int = 0, **attributes: float) -> Drawer:
    """One ONNX operator after the other."""

    def draw(draft: Draft, operator: Operator) -> None:
        made = operator.output
        value = draft.own(operator.input(0))
        for op_type in op_types[:-1]:
            value = draft.node(op_type, [value], f"{made.name}_{op_type.lower()}")
        for op_type in op_types[-1:]:
            value = draft.node(op_type, [value], made.name, **attributes)
        draft.give(made, value, activation)

    return draw


def clip(low: float, high: float) -> Drawer:
    def draw(draft: Draft, operator: Operator) -> None:
        name = operator.output.name
        bounds = [draft.parameter(f"{name}_bound", bound, "float32") for bound in (low, high)]
        value = draft.node("Clip", [draft.own(operator.input(0)), *bounds], name)
        draft.give(operator.output, value)

    return draw


def binary(op_type: str, activation: int | None = 0) -> Drawer:
    """`activation` is the option's field; None for an operator that has no such option."""

    def draw(draft: Draft, operator: Operator) -> None:
        made = operator.output
        read = [draft.own(spread(operator.input(n), len(made.shape))) for n in (0, 1)]
        fused = 0 if activation is None else operator.options.scalar(activation, "b", 0)
        draft.give(made, draft.node(op_type, read, made.name), fused)

    return draw


def leaky_relu(draft: Draft, operator: Operator) -> None:
    alpha = operator.options.scalar(0, "f", 0.0)
    value = draft.node(
        "LeakyRelu", [draft.own(operator.input(0))], operator.output.name, alpha=alpha
    )
    draft.give(operator.output, value)


def squared(draft: Draft, operator: Operator) -> None:
    value = draft.own(operator.input(0))
    draft.give(operator.output, draft.node("Mul", [value, value], operator.output.name))


def squared_difference(draft: Draft, operator: Operator) -> None:
    made = operator.output
    read = [draft.own(spread(operator.input(n), len(made.shape))) for n in (0, 1)]
    apart = draft.node("Sub", read, f"{made.name}_difference")
    draft.give(made, draft.node("Mul", [apart, apart], made.name))


def softmax(draft: Draft, operator: Operator) -> None:
    """softmax(beta * x) along the last axis."""
    made, value = operator.output, draft.own(operator.input(0))
    beta = operator.options.scalar(0, "f", 1.0)
    if beta != 1.0:
        factor = draft.parameter(f"{made.name}_beta", beta, "float32")
        value = draft.node("Mul", [value, factor], f"{made.name}_scaled")
    draft.give(made, draft.node("Softmax", [value], made.name, axis=-1))


def cast(draft: Draft, operator: Operator) -> None:
    made = operator.output
    dtype = "float32" if made.grid else made.dtype
    value = draft.node("Cast", [draft.own(operator.input(0))], made.name, to=ONNX_TYPES[dtype])
    draft.give(made, value)


def same_value(draft: Draft, operator: Operator) -> None:
    """QUANTIZE and DEQUANTIZE: the grids of the tensors on either side say it all."""
    given = operator.input(0)
    draft.give(operator.output, draft.own(given if given.values is None else real(given)))


# -- products and reductions ---------------------------------------------------------------


def fully_connected(draft: Draft, operator: Operator) -> None:
    """y = x W^T + b over the last axis; all axes before it are one."""
    fed, weight, made = operator.input(0), operator.input(1), operator.output
    if operator.options.scalar(1, "b", 0):
        raise Malformed("FULLY_CONNECTED with shuffled weights")
    if len(weight.shape) != 2 or not weight.shape[1]:
        raise Malformed(f"the weight `{weight.name}` is no matrix")
    value, depth = draft.own(fed), weight.shape[1]
    if len(fed.shape) != 2 or fed.shape[1] != depth:
        rows = math.prod(fed.shape) // depth
        value = draft.reshaped(value, (rows, depth), f"{made.name}_rows")
    if weight.values is None:
        biased = [draft.own(bias)] if (bias := operator.optional(2)) else []
        operands = [draft.own(weight), *biased]
    else:
        operands = weights(draft, fed, weight, operator.optional(2))
    product = draft.node("Gemm", [value, *operands], made.name, transB=1)
    give = draft.give if len(made.shape) == 2 else draft.give_reshaped
    give(made, product, operator.options.scalar(0, "b", 0))


def batch_matmul(draft: Draft, operator: Operator) -> None:
    made, read = operator.output, []
    for index in (0, 1):
        value, rank = draft.own(operator.input(index)), len(operator.input(index).shape)
        if operator.options.scalar(index, "?", False):
            order = [*range(rank - 2), rank - 1, rank - 2]
            value = draft.node("Transpose", [value], f"{made.name}_turned", perm=order)
        read.append(value)
    draft.give(made, draft.node("MatMul", read, made.name))


def reduced(op_type: str) -> Drawer:
    """Over height and width alone, an image is read channels first."""

    def draw(draft: Draft, operator: Operator) -> None:
        fed, made = operator.input(0), operator.output
        rank, keep = len(fed.shape), operator.options.scalar(0, "?", False)
        axes = sorted({axis % rank for axis in integers(operator.input(1))} if rank else ())
        is_image = rank == 4 and axes == [1, 2]
        value = draft.first(fed) if is_image else draft.own(fed)
        inputs, given = [value], {"axes": [2, 3] if is_image else axes}
        if op_type == "ReduceSum":  # whose axes have been an input since opset 13
            inputs.append(draft.parameter(f"{made.name}_axes", given.pop("axes"), "int64"))
        value = draft.node(op_type, inputs, made.name, keepdims=int(keep), **given)
        give = draft.give_first if is_image and keep else draft.give
        give(made, value)

    return draw


def arg(op_type: str) -> Drawer:
    def draw(draft: Draft, operator: Operator) -> None:
        made, (axis,) = operator.output, integers(operator.input(1)) or [0]
        fed = draft.own(operator.input(0))
        value = draft.node(op_type, [fed], made.name, axis=axis, keepdims=0)
        if made.dtype != "int64":
            value = draft.node("Cast", [value], f"{made.name}_cast", to=ONNX_TYPES[made.dtype])
        draft.give(made, value)

    return draw


# -- moving values -------------------------------------------------------------------------


def reshape(draft: Draft, operator: Operator) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS: the output's shape says which."""
    made = operator.output
    draft.give(made, draft.reshaped(draft.own(operator.input(0)), made.shape, made.name))


def transpose(draft: Draft, operator: Operator) -> None:
    order = integers(operator.input(1))
    value = draft.node(
        "Transpose", [draft.own(operator.input(0))], operator.output.name, perm=order
    )
    draft.give(operator.output, value)


def concatenation(draft: Draft, operator: Operator) -> None:
    made = operator.output
    read = [draft.own(operator.input(n)) for n in range(len(operator.inputs))]
    axis, fused = operator.options.scalar(0, "i", 0), operator.options.scalar(1, "b", 0)
    draft.give(made, draft.node("Concat", read, made.name, axis=axis), fused)


def pack(draft: Draft, operator: Operator) -> None:
    made = operator.output
    axis = operator.options.scalar(1, "i", 0) % max(len(made.shape), 1)
    shape = [1 if index == axis else size for index, size in enumerate(made.shape)]
    read = [
        draft.reshaped(draft.own(operator.input(n)), shape, f"{made.name}_part")
        for n in range(len(operator.inputs))
    ]
    draft.give(made, draft.node("Concat", read, made.name, axis=axis))


def unpack(draft: Draft, operator: Operator) -> None:
    fed = operator.input(0)
    axis = operator.options.scalar(1, "i", 0) % max(len(fed.shape), 1)
    for index, made in enumerate(operator.outputs):
        part = sliced(draft, fed, [(axis, index, index + 1, 1)], f"{made.name}_part")
        draft.give(made, draft.reshaped(part, made.shape, made.name))


def split(draft: Draft, operator: Operator) -> None:
    """SPLIT names the axis first, SPLIT_V last; the outputs' shapes say where to cut."""
    axis_at, fed_at = (0, 1) if operator.type == "SPLIT" else (2, 0)
    fed = operator.input(fed_at)
    axis, begin = integers(operator.input(axis_at))[0] % max(len(fed.shape), 1), 0
    for made in operator.outputs:
        end = begin + (made.shape[axis] if axis < len(made.shape) else 0)
        draft.give(made, sliced(draft, fed, [(axis, begin, end, 1)], made.name))
        begin = end


def slice_(draft: Draft, operator: Operator) -> None:
    begins, sizes = integers(operator.input(1)), integers(operator.input(2))
    spans = [
        (axis, begin, END if size < 0 else begin + size, 1)
        for axis, (begin, size) in enumerate(zip(begins, sizes, strict=False))
    ]
    draft.give(operator.output, sliced(draft, operator.input(0), spans, operator.output.name))


def strided_slice(draft: Draft, operator: Operator) -> None:
    """A bit of a mask stands for an axis: its bound is open, or the axis is taken out."""
    fed, made = operator.input(0), operator.output
    open_begin, open_end, ellipsis, new, shrunk = (
        operator.options.scalar(field, "i", 0) for field in range(5)
    )
    if ellipsis or new:
        raise Malformed("STRIDED_SLICE with an ellipsis or a new axis is not supported yet")
    given = [integers(operator.input(n)) for n in (1, 2, 3)]
    spans = []
    for axis, (begin, end, step) in enumerate(zip(*given, strict=False)):
        bit = 1 << axis
        if shrunk & bit:
            begin, end, step = begin, (begin + 1) or END, 1
        elif open_begin & bit:
            begin = 0 if step > 0 else END
        if open_end & bit and not shrunk & bit:
            end = END if step > 0 else -END
        spans.append((axis, begin, end, step))
    value = sliced(draft, fed, spans, f"{made.name}_part" if shrunk else made.name)
    draft.give(made, draft.reshaped(value, made.shape, made.name) if shrunk else value)


def sliced(
    draft: Draft, fed: Tensor, spans: Sequence[tuple[int, int, int, int]], name: str
) -> Value:
    """Along each (axis, begin, end, step), as Python slices."""
    columns = zip(*((begin, end, axis, step) for axis, begin, end, step in spans), strict=True)
    roles = ("begins", "ends", "axes", "steps")
    parameters = [
        draft.parameter(f"{name}_{role}", column, "int64")
        for role, column in zip(roles, columns, strict=True)
    ]
    return draft.node("Slice", [draft.own(fed), *parameters], name)


def gather(draft: Draft, operator: Operator) -> None:
    axis, batched = (operator.options.scalar(field, "i", 0) for field in (0, 1))
    if batched:
        raise Malformed("GATHER with batch dimensions is not supported yet")
    read = [draft.own(operator.input(n)) for n in (0, 1)]
    draft.give(
        operator.output, draft.node("Gather", read, operator.output.name, axis=axis)
    )


def tile(draft: Draft, operator: Operator) -> None:
    made = operator.output
    times = draft.parameter(f"{made.name}_times", integers(operator.input(1)), "int64")
    draft.give(made, draft.node("Tile", [draft.own(operator.input(0)), times], made.name))


def space_to_batch(draft: Draft, operator: Operator) -> None:
    """(N, H * a, W * b, C) -> (a * b * N, H, W, C), zeros around the image first."""
    fed, made = operator.input(0), operator.output
    (a, b), pads = _blocks(operator)
    n, h, w, c = (*made.shape, 0, 0, 0, 0)[:4]
    laid = [0, pads[0], pads[2], 0, 0, pads[1], pads[3], 0]
    padded = [draft.own(fed), draft.parameter(f"{made.name}_pads", laid, "int64")]
    value = draft.node("Pad", padded, f"{made.name}_padded")
    value = draft.reshaped(value, (n // (a * b), h, a, w, b, c), f"{made.name}_blocks")
    value = draft.node("Transpose", [value], f"{made.name}_sorted", perm=(2, 4, 0, 1, 3, 5))
    draft.give(made, draft.reshaped(value, made.shape, made.name))


def batch_to_space(draft: Draft, operator: Operator) -> None:
    """(a * b * N, H, W, C) -> (N, H * a, W * b, C), a border of the image taken off."""
    fed, made = operator.input(0), operator.output
    (a, b), crops = _blocks(operator)
    n, h, w, c = (*fed.shape, 0, 0, 0, 0)[:4]
    n //= a * b
    value = draft.reshaped(draft.own(fed), (a, b, n, h, w, c), f"{made.name}_blocks")
    value = draft.node("Transpose", [value], f"{made.name}_sorted", perm=(2, 3, 0, 4, 1, 5))
    value = draft.reshaped(value, (n, h * a, w * b, c), f"{made.name}_whole")
    bounds = [[crops[0], crops[2]], [h * a - crops[1], w * b - crops[3]], [1, 2]]
    spans = [draft.parameter(f"{made.name}_crop", bound, "int64") for bound in bounds]
    draft.give(made, draft.node("Slice", [value, *spans], made.name))


def _blocks(operator: Operator) -> tuple[list[int], list[int]]:
    blocks, borders = integers(operator.input(1)), integers(operator.input(2))
    if len(blocks) != 2 or len(borders) != 4 or min(blocks) < 1:
        raise Malformed(f"{operator.type} is supported for images of rank 4")
    return blocks, borders


# ONNX's numbers of the types, by the names NumPy gives them.
ONNX_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
}
assert set(ONNX_TYPES) == set(TYPES.values())
