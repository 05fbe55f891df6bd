"""Operators that compute on codes become DQ, the float operator and Q.

An operand is three consecutive inputs: codes, scale, zero point; the output has the last two. An
int32 bias is on the grid of the products, scale_a * scale_b. Source: ONNX's operators and
onnxruntime's docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from npumake.errors import GraphError
from npumake.frontends.codes.pairs import StoredCodes, codes_at, quantize_result, real
from npumake.graph import Graph, Node, Value, array, attribute, flatten_around

AXES_AS_INPUT = 18  # the opset since which ReduceMean has its axes as an input
AXIS_ALONE = 13  # the opset since which Softmax has a single axis


class QOperator(NamedTuple):
    """Positions of the operands, of the output's scale, and of a bias."""

    op_type: str
    operands: tuple[int, ...]
    output: int
    bias: int | None = None
    plain: tuple[int, ...] = ()  # float inputs before the operands
    weight_axis: Callable[[Node], int] = lambda node: 1  # channel axis of the second operand


def _columns(node: Node) -> int:
    """The last axis of a MatMul's right operand."""
    weight = array(node.inputs[3])
    return 1 if weight is None else weight.ndim - 1


QOPERATORS: Mapping[str, QOperator] = {
    "QGemm": QOperator(
        "Gemm", (0, 3), 7, bias=6, weight_axis=lambda n: 0 if attribute(n, "transB", 0) else 1
    ),
    "QLinearAdd": QOperator("Add", (0, 3), 6),
    "QLinearAveragePool": QOperator("AveragePool", (0,), 3),
    "QLinearConcat": QOperator("Concat", (), 0),
    "QLinearConv": QOperator("Conv", (0, 3), 6, bias=8, weight_axis=lambda n: 0),
    "QLinearGlobalAveragePool": QOperator("GlobalAveragePool", (0,), 3),
    "QLinearLeakyRelu": QOperator("LeakyRelu", (0,), 3),
    "QLinearMatMul": QOperator("MatMul", (0, 3), 6, weight_axis=_columns),
    "QLinearMul": QOperator("Mul", (0, 3), 6),
    "QLinearReduceMean": QOperator("ReduceMean", (0,), 3),
    "QLinearSigmoid": QOperator("Sigmoid", (0,), 3),
    "QLinearSoftmax": QOperator("Softmax", (0,), 3),
    "QLinearWhere": QOperator("Where", (1, 4), 7, plain=(0,)),
}


def in_pairs(graph: Graph) -> None:
    """Edits in place. Raises GraphError for channels-last operands."""
    for node in graph.nodes():
        rule = QOPERATORS.get(node.op_type)
        if rule is not None:
            _rewrite(graph, node, rule)


def _rewrite(graph: Graph, node: Node, rule: QOperator) -> None:
    if attribute(node, "channels_last", 0):
        message = f"`{node.name}` ({node.op_type}) has its channels last"
        raise GraphError(message, hint="use the file before onnxruntime optimized it")
    places = rule.operands or tuple(range(2, len(node.inputs), 3))
    operands = [codes_at(node, index) for index in places]
    scale, zero_point = (*node.inputs[rule.output : rule.output + 2], None, None)[:2]
    bias = _bias(graph, node, rule, operands)
    alpha = attribute(node, "alpha", 1.0) if rule.op_type == "Gemm" else 1.0
    inputs: list[Value | None] = [node.inputs[index] for index in rule.plain]
    for position, operand in enumerate(operands):
        axis = rule.weight_axis(node) if position else 1
        if position and alpha != 1.0:
            operand = operand._replace(scale=_scaled(graph, node, operand.scale, alpha))
        inputs.append(real(graph, operand, node, axis))
    flat, attributes = _flat_axis(node, rule), _attributes(graph, node, rule, inputs)
    graph.become(node, rule.op_type, [*inputs, *bias], **attributes)
    if scale is not None:  # a QGemm may return floats
        quantize_result(graph, node, scale, zero_point)
    if flat is not None:
        flatten_around(graph, node, flat)


def _bias(graph: Graph, node: Node, rule: QOperator, operands: list[StoredCodes]) -> list[Value]:
    """The dequantized bias. Raises GraphError for computed scales."""
    place = rule.bias
    codes = node.inputs[place] if place is not None and place < len(node.inputs) else None
    if codes is None:
        return []
    scales = [array(operand.scale) for operand in operands]
    if any(scale is None for scale in scales):
        raise GraphError(f"`{node.name}` ({node.op_type}) has a bias, and its scales are computed")
    alpha = attribute(node, "alpha", 1.0) if rule.op_type == "Gemm" else 1.0
    s_x, s_w = (np.asarray(scale, np.float64).reshape(-1) for scale in scales)
    product_scale = alpha * s_x * s_w
    grid = (product_scale if product_scale.size > 1 else product_scale.reshape(())).astype(
        np.float32
    )
    zeros = np.zeros(grid.shape, np.int32)
    name = str(codes.name)
    step = graph.constant(f"{name}_scale", grid)
    zero_point = graph.constant(f"{name}_zero_point", zeros)
    return [real(graph, StoredCodes(codes, step, zero_point), node, axis=0)]


def _scaled(graph: Graph, node: Node, scale: Value, alpha: float) -> Value:
    values = array(scale)
    if values is None:
        raise GraphError(f"`{node.name}` ({node.op_type}) has a scale that is computed")
    return graph.constant(f"{scale.name}_alpha", (values * alpha).astype(np.float32))


def _attributes(graph: Graph, node: Node, rule: QOperator, inputs: list[Value | None]) -> Any:
    """The attributes that the float operator shares."""
    attributes = {name: attribute(node, name) for name in node.attributes}
    for name in ("channels_last", "opset", *(["alpha"] if rule.op_type == "Gemm" else [])):
        attributes.pop(name, None)
    if rule.op_type == "ReduceMean" and "axes" in attributes and graph.opset >= AXES_AS_INPUT:
        axes = np.array(attributes.pop("axes"), np.int64)
        inputs.append(graph.constant(f"{node.name}_axes", axes))
    return attributes


def _flat_axis(node: Node, rule: QOperator) -> int | None:
    """Before opset 13 Softmax flattened all axes from its own on."""
    if rule.op_type != "Softmax" or attribute(node, "opset", AXIS_ALONE) >= AXIS_ALONE:
        return None
    axis: int = attribute(node, "axis", -1)
    return None if axis == -1 else axis
