"""Dynamically quantized models, whose activations are scaled at every run, become float models.

No chip measures a tensor before computing on it. Weights keep their 8-bit values as float32; a
calibration then determines the activation ranges.

    DynamicQuantizeLinear(x)           x itself, as codes of scale 1 and zero point 0
    ConvInteger, MatMulInteger         Conv, MatMul of x and w - zero point
    MatMulIntegerToFloat, DynamicQuantizeMatMul     MatMul with its weight and bias
    DynamicQuantizeLSTM                LSTM with transposed weights

A Mul by the scales and a Cast stay, and the passes absorb them. Source: ONNX's operators and
onnxruntime's docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, attribute, type_number
from npumake.kernels.affine import per_axis

DYNAMIC_QUANTIZER = "DynamicQuantizeLinear"
HINT = "use the float model, or one from onnxruntime.quantization.quantize_static"
Read = Callable[[Graph, Node], None]


def in_floats(graph: Graph) -> None:
    """Edits in place. Raises GraphError for a computed weight, and for other readers of the
    codes."""
    quantizers = {
        node.outputs[0]: node for node in graph.nodes() if node.op_type == DYNAMIC_QUANTIZER
    }
    for node in graph.nodes():
        if node.op_type in DYNAMIC:
            DYNAMIC[node.op_type](graph, node)
    for codes, node in quantizers.items():
        _feed_reals(graph, codes, node)


def _feed_reals(graph: Graph, codes: Value, node: Node) -> None:
    x = node.inputs[0]
    if x is None or any(value.is_graph_output() for value in node.outputs):
        raise GraphError(
            f"`{node.name}` ({DYNAMIC_QUANTIZER}) is an output of the model", hint=HINT
        )
    for reader in (use.node for use in codes.uses()):
        message = f"`{reader.name}` ({reader.op_type}) reads codes of no fixed scale"
        raise GraphError(message, hint=HINT)
    for value, number in zip(node.outputs[1:], (np.float32(1), np.uint8(0)), strict=False):
        graph.replace_uses(value, graph.constant(f"{value.name}_fixed", np.asarray(number)))
    graph.remove(node)


def _input(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _weight(
    graph: Graph, node: Node, places: tuple[int, int | None, int | None], axis: int
) -> np.ndarray:
    """scale * (w - zero point) of the inputs at these positions, with channels along `axis`."""
    codes, scale, zero_point = (None if place is None else _input(node, place) for place in places)
    values = array(codes)
    constants = [None if value is None else array(value) for value in (scale, zero_point)]
    computed = any(
        a is None for a, v in zip(constants, (scale, zero_point), strict=True) if v is not None
    )
    if values is None or computed:
        raise GraphError(f"`{node.name}` ({node.op_type}) has a weight that is computed", hint=HINT)
    steps = values.astype(np.float32)
    if constants[1] is not None:
        steps = steps - _along(constants[1].astype(np.float32), values.ndim, axis)
    if constants[0] is not None:
        steps = steps * _along(constants[0].astype(np.float32), values.ndim, axis)
    return np.asarray(steps, np.float32)


def _along(values: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A scalar, or one value per channel."""
    return values.reshape(()) if values.size == 1 else per_axis(values.reshape(-1), rank, axis)


def _constant(graph: Graph, node: Node, index: int, values: np.ndarray) -> Value:
    value = node.inputs[index]
    assert value is not None
    return graph.constant(f"{str(value.name).removesuffix('_quantized')}_real", values)


def _quantizer_input(maker: Node) -> Value:
    """The input of a DynamicQuantizeLinear."""
    x = maker.inputs[0]
    assert x is not None
    return x


def _reals(graph: Graph, node: Node) -> Value:
    """The node's float input: x itself, or codes minus their zero point."""
    codes, zero_point = node.inputs[0], _input(node, 2)
    maker = None if codes is None else codes.producer()
    if codes is None or (maker is not None and maker.op_type == DYNAMIC_QUANTIZER):
        if maker is None or (zero_point is not None and zero_point is not maker.outputs[2]):
            message = (
                f"`{node.name}` ({node.op_type}) reads codes with the zero point of another tensor"
            )
            raise GraphError(message, hint=HINT)
        return _quantizer_input(maker)
    name, single = str(codes.name), type_number("float32")
    real = graph.insert("Cast", [codes], f"{name}_steps", before=node, to=single)
    if zero_point is None:
        return real
    offset = graph.insert("Cast", [zero_point], f"{name}_offset", before=node, to=single)
    return graph.insert("Sub", [real, offset], f"{name}_real", before=node)


def _conv_integer(graph: Graph, node: Node) -> None:
    weight = _constant(graph, node, 1, _weight(graph, node, (1, None, 3), 0))
    _product(graph, node, "Conv", weight)


def _matmul_integer(graph: Graph, node: Node) -> None:
    rank = len(_shape(node, 1))
    weight = _constant(graph, node, 1, _weight(graph, node, (1, None, 3), rank - 1))
    _product(graph, node, "MatMul", weight)


def _product(graph: Graph, node: Node, op_type: str, weight: Value) -> None:
    attributes = {name: attribute(node, name) for name in node.attributes}
    graph.become(node, op_type, [_reals(graph, node), weight], **attributes)
    graph.forget_shape(node.outputs[0], and_type=True)


def _matmul_to_float(graph: Graph, node: Node) -> None:
    maker = node.inputs[0].producer() if node.inputs[0] is not None else None
    if (
        maker is None
        or maker.op_type != DYNAMIC_QUANTIZER
        or node.inputs[2] is not maker.outputs[1]
    ):
        message = (
            f"`{node.name}` ({node.op_type}) reads codes that are not from {DYNAMIC_QUANTIZER}"
        )
        raise GraphError(message, hint=HINT)
    weight = _weight(graph, node, (1, 3, 5), len(_shape(node, 1)) - 1)
    graph.set_inputs(node, {0: _quantizer_input(maker)})
    _with_bias(graph, node, _constant(graph, node, 1, weight), _input(node, 6))


def _dynamic_matmul(graph: Graph, node: Node) -> None:
    weight = _weight(graph, node, (1, 2, 3), len(_shape(node, 1)) - 1)
    _with_bias(graph, node, _constant(graph, node, 1, weight), _input(node, 4))


def _with_bias(graph: Graph, node: Node, weight: Value, bias: Value | None) -> None:
    output, x = node.outputs[0], node.inputs[0]
    if bias is None:
        graph.become(node, "MatMul", [x, weight])
        return
    product = graph.insert("MatMul", [x, weight], f"{output.name}_product", before=node)
    graph.become(node, "Add", [product, bias])


def _lstm(graph: Graph, node: Node) -> None:
    """(directions, inputs, 4 * hidden) → (directions, 4 * hidden, inputs). A scale is per
    direction, or per direction and column."""
    weights = [_gates(node, *places) for places in ((1, 8, 9), (2, 10, 11))]
    w, r = (
        _constant(graph, node, index, np.ascontiguousarray(values.transpose(0, 2, 1)))
        for index, values in enumerate(weights, 1)
    )
    attributes = {name: attribute(node, name) for name in node.attributes}
    graph.become(node, "LSTM", [node.inputs[0], w, r, *node.inputs[3:8]], **attributes)


def _gates(node: Node, codes: int, scale: int, zero_point: int) -> np.ndarray:
    q, s, z = (array(_input(node, place)) for place in (codes, scale, zero_point))
    if q is None or s is None or z is None:
        raise GraphError(f"`{node.name}` ({node.op_type}) has a weight that is computed", hint=HINT)
    s, z = (a.astype(np.float32).reshape(q.shape[0], 1, -1) for a in (s, z))
    return np.asarray((q.astype(np.float32) - z) * s, np.float32)


def _shape(node: Node, index: int) -> tuple[int, ...]:
    values = array(node.inputs[index])
    if values is None:
        raise GraphError(f"`{node.name}` ({node.op_type}) has a weight that is computed", hint=HINT)
    return values.shape


DYNAMIC: Mapping[str, Read] = {
    "ConvInteger": _conv_integer,
    "DynamicQuantizeLSTM": _lstm,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulInteger": _matmul_integer,
    "MatMulIntegerToFloat": _matmul_to_float,
}
