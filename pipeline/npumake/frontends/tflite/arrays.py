"""Operators on arrays of any rank: elementwise, products and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

from npumake.frontends.tflite.draft import GraphDraft
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.images import weights
from npumake.frontends.tflite.schema import TYPES, TFLiteOperator
from npumake.frontends.tflite.tensors import integers, real, spread
from npumake.graph import Value

Drawer = Callable[[GraphDraft, TFLiteOperator], None]

# ONNX's type numbers, by NumPy name.
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


# -- elementwise ---------------------------------------------------------------------------


def unary(*op_types: str, activation: int = 0, **attributes: float) -> Drawer:
    """A chain of ONNX operators."""

    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        output = operator.output
        value = draft.own(operator.input(0))
        for op_type in op_types[:-1]:
            value = draft.node(op_type, [value], f"{output.name}_{op_type.lower()}")
        for op_type in op_types[-1:]:
            value = draft.node(op_type, [value], output.name, **attributes)
        draft.give(output, value, activation)

    return draw


def clip(low: float, high: float) -> Drawer:
    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        name = operator.output.name
        bounds = [draft.parameter(f"{name}_bound", bound, "float32") for bound in (low, high)]
        value = draft.node("Clip", [draft.own(operator.input(0)), *bounds], name)
        draft.give(operator.output, value)

    return draw


def binary(op_type: str, activation: int | None = 0) -> Drawer:
    """`activation` is the option's field; None for an operator without that option."""

    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        output = operator.output
        read = [draft.own(spread(operator.input(n), len(output.shape))) for n in (0, 1)]
        fused = 0 if activation is None else operator.options.scalar(activation, "b", 0)
        draft.give(output, draft.node(op_type, read, output.name), fused)

    return draw


def added(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """ADD_N: a chain of Adds."""
    output = operator.output
    value, *others = (draft.own(operator.input(n)) for n in range(len(operator.inputs)))
    for other in others:
        value = draft.node("Add", [value, other], output.name)
    draft.give(output, value)


def negated(op_type: str) -> Drawer:
    """Not of a binary comparison."""

    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        output = operator.output
        read = [draft.own(operator.input(n)) for n in (0, 1)]
        value = draft.node(op_type, read, f"{output.name}_{op_type.lower()}")
        draft.give(output, draft.node("Not", [value], output.name))

    return draw


def select(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """SELECT and SELECT_V2; in SELECT a rank-1 condition selects whole rows."""
    output, condition, rank = operator.output, operator.input(0), len(operator.output.shape)
    chosen = draft.own(condition)
    if operator.type == "SELECT" and len(condition.shape) == 1 < rank:
        shape = (*condition.shape, *(1,) * (rank - 1))
        chosen = draft.reshaped(chosen, shape, f"{output.name}_rows")
    read = [draft.own(operator.input(n)) for n in (1, 2)]
    draft.give(output, draft.node("Where", [chosen, *read], output.name))


def gelu(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """x/2 (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) for erf."""
    output, value = operator.output, draft.own(operator.input(0))

    def node(op_type: str, *read: Value | float) -> Value:
        name = f"{output.name}_{op_type.lower()}"
        values = [draft.parameter(name, x, "float32") if isinstance(x, float) else x for x in read]
        return draft.node(op_type, values, name)

    if operator.options.scalar(0, "?", False):
        cubed = node("Mul", node("Pow", value, 3.0), 0.044715)
        bent = node("Tanh", node("Mul", node("Add", value, cubed), math.sqrt(2 / math.pi)))
    else:
        bent = node("Erf", node("Mul", value, math.sqrt(0.5)))
    draft.give(output, node("Mul", node("Mul", value, node("Add", bent, 1.0)), 0.5))


def leaky_relu(draft: GraphDraft, operator: TFLiteOperator) -> None:
    alpha = operator.options.scalar(0, "f", 0.0)
    value = draft.node(
        "LeakyRelu", [draft.own(operator.input(0))], operator.output.name, alpha=alpha
    )
    draft.give(operator.output, value)


def squared(draft: GraphDraft, operator: TFLiteOperator) -> None:
    value = draft.own(operator.input(0))
    draft.give(operator.output, draft.node("Mul", [value, value], operator.output.name))


def squared_difference(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    read = [draft.own(spread(operator.input(n), len(output.shape))) for n in (0, 1)]
    apart = draft.node("Sub", read, f"{output.name}_difference")
    draft.give(output, draft.node("Mul", [apart, apart], output.name))


def softmax(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """softmax(beta * x) along the last axis."""
    output, value = operator.output, draft.own(operator.input(0))
    beta = operator.options.scalar(0, "f", 1.0)
    if beta != 1.0:
        factor = draft.parameter(f"{output.name}_beta", beta, "float32")
        value = draft.node("Mul", [value, factor], f"{output.name}_scaled")
    draft.give(output, draft.node("Softmax", [value], output.name, axis=-1))


def cast(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output = operator.output
    dtype = "float32" if output.grid else output.dtype
    value = draft.node("Cast", [draft.own(operator.input(0))], output.name, to=ONNX_TYPES[dtype])
    draft.give(output, value)


def same_value(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """QUANTIZE and DEQUANTIZE: only the grids of input and output matter."""
    source = operator.input(0)
    draft.give(operator.output, draft.own(source if source.values is None else real(source)))


# -- products and reductions ---------------------------------------------------------------


def fully_connected(draft: GraphDraft, operator: TFLiteOperator) -> None:
    """y = x W^T + b over the last axis; all axes before it are flattened."""
    x, weight, output = operator.input(0), operator.input(1), operator.output
    if operator.options.scalar(1, "b", 0):
        raise MalformedError("FULLY_CONNECTED with shuffled weights")
    if len(weight.shape) != 2 or not weight.shape[1]:
        raise MalformedError(f"the weight `{weight.name}` is not a matrix")
    value, depth = draft.own(x), weight.shape[1]
    if len(x.shape) != 2 or x.shape[1] != depth:
        rows = math.prod(x.shape) // depth
        value = draft.reshaped(value, (rows, depth), f"{output.name}_rows")
    if weight.values is None:
        biased = [draft.own(bias)] if (bias := operator.optional(2)) else []
        operands = [draft.own(weight), *biased]
    else:
        operands = weights(draft, x, weight, operator.optional(2))
    product = draft.node("Gemm", [value, *operands], output.name, transB=1)
    give = draft.give if len(output.shape) == 2 else draft.give_reshaped
    give(output, product, operator.options.scalar(0, "b", 0))


def batch_matmul(draft: GraphDraft, operator: TFLiteOperator) -> None:
    output, read = operator.output, []
    for index in (0, 1):
        value, rank = draft.own(operator.input(index)), len(operator.input(index).shape)
        if operator.options.scalar(index, "?", False):
            order = [*range(rank - 2), rank - 1, rank - 2]
            value = draft.node("Transpose", [value], f"{output.name}_turned", perm=order)
        read.append(value)
    draft.give(output, draft.node("MatMul", read, output.name))


def reduced(op_type: str) -> Drawer:
    """Reductions over height and width read the image channels-first."""

    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        x, output = operator.input(0), operator.output
        rank, keep = len(x.shape), operator.options.scalar(0, "?", False)
        axes = sorted({axis % rank for axis in integers(operator.input(1))} if rank else ())
        is_image = rank == 4 and axes == [1, 2]
        value = draft.first(x) if is_image else draft.own(x)
        inputs, attributes = [value], {"axes": [2, 3] if is_image else axes}
        if op_type == "ReduceSum":  # axes are an input since opset 13
            inputs.append(draft.parameter(f"{output.name}_axes", attributes.pop("axes"), "int64"))
        value = draft.node(op_type, inputs, output.name, keepdims=int(keep), **attributes)
        give = draft.give_first if is_image and keep else draft.give
        give(output, value)

    return draw


def arg(op_type: str) -> Drawer:
    def draw(draft: GraphDraft, operator: TFLiteOperator) -> None:
        output, axis = operator.output, integers(operator.input(1))[0]
        x = draft.own(operator.input(0))
        value = draft.node(op_type, [x], output.name, axis=axis, keepdims=0)
        if output.dtype != "int64":
            value = draft.node("Cast", [value], f"{output.name}_cast", to=ONNX_TYPES[output.dtype])
        draft.give(output, value)

    return draw
