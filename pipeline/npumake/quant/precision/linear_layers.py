"""Linear layers behind one interface: Conv, ConvTranspose, Gemm, and MatMul by a constant matrix.

A weight is a kernel w[g, o, i, t]: group, output channel and input channel within the group, tap of
the window. One output channel sums over one row of the last two axes, for each of:

    Conv (O, I / G, *k)    ConvTranspose (I, O / G, *k)    Gemm (O, I) or (I, O)    MatMul (I, O)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute
from npumake.graph.qdq import grid_behind, pair_of

LINEAR_OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
DEFAULT_ATTRIBUTES = {
    "alpha": 1.0,
    "beta": 1.0,
    "transA": 0,
}  # of a Gemm that is a plain product


class LinearLayer(NamedTuple):
    """A linear node whose weight is constant."""

    node: Node
    x: Value
    weight: Value  # the float constant, before its Q/DQ
    pair: tuple[Node, Node] | None  # Q and DQ of the weight

    @property
    def y(self) -> Value:
        return self.node.outputs[0]

    @property
    def values(self) -> np.ndarray:
        weight = array(self.weight)
        assert weight is not None
        return weight

    def axis(self, value: Value) -> int:
        """The channel axis of its input or output."""
        rank = 0 if value.shape is None else len(value.shape)
        return 1 if self.node.op_type in ("Conv", "ConvTranspose") else rank - 1

    def kernel(self) -> np.ndarray:
        """float64 of shape (groups, outputs, inputs, taps), channels counted per group."""
        return as_kernel(self.node, self.values.astype(np.float64))

    def bias(self) -> np.ndarray:
        """float64 of shape (channels,), zeros without a bias."""
        constant = array(self.node.inputs[2]) if len(self.node.inputs) > 2 else None
        wide = np.zeros(1) if constant is None else constant.reshape(-1).astype(np.float64)
        return np.broadcast_to(wide, self.channels).copy()

    @property
    def channels(self) -> int:
        """The number of output channels."""
        groups, outputs, *_ = self.kernel().shape
        return groups * outputs

    @property
    def has_bias(self) -> bool:
        return len(self.node.inputs) > 2 and self.node.inputs[2] is not None


def layer(node: Node) -> LinearLayer | None:
    """The node as a linear layer; None for any other node.

    Also None with a computed bias, a bias that is not per channel, a scaled product or a transposed
    input.
    """
    if node.op_type not in LINEAR_OPERATORS or node.domain or node.inputs[0] is None:
        return None
    if any(attribute(node, name, plain) != plain for name, plain in DEFAULT_ATTRIBUTES.items()):
        return None
    x, weight = node.inputs[:2]
    pair = pair_of(weight)
    constant = weight if pair is None else pair[0].inputs[0]
    values = array(constant)
    if x is None or array(x) is not None or constant is None or values is None:
        return None
    if node.op_type == "MatMul" and values.ndim != 2:
        return None
    linear = LinearLayer(node, x, constant, pair)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    constant_bias = array(bias)
    if bias is not None and (
        constant_bias is None or constant_bias.size not in (1, linear.channels)
    ):
        return None
    return linear


def quantized_layers(graph: Graph) -> list[LinearLayer]:
    """The layers that run in integers: one input scale, symmetric weights."""
    layers = [linear for node in graph.nodes() if (linear := layer(node)) is not None]
    grids = [(grid_behind(linear.x), grid_behind(linear.node.inputs[1])) for linear in layers]
    return [
        linear
        for linear, (x, w) in zip(layers, grids, strict=True)
        if x is not None and w is not None and x.scale.size == 1 and not w.zero_point.any()
    ]


def as_kernel(node: Node, weight: np.ndarray) -> np.ndarray:
    """A weight of the node in the shape (groups, outputs, inputs, taps)."""
    group = attribute(node, "group", 1)
    if node.op_type == "Conv":
        return weight.reshape(group, weight.shape[0] // group, weight.shape[1], -1)
    if node.op_type == "ConvTranspose":
        parts = weight.reshape(group, weight.shape[0] // group, weight.shape[1], -1)
        return parts.swapaxes(1, 2)
    return (weight if attribute(node, "transB", 0) else weight.T)[None, :, :, None]


def set_weight(graph: Graph, layer: LinearLayer, kernel: np.ndarray) -> None:
    """Replaces the weight; `kernel` has the shape of `LinearLayer.kernel`. Its Q/DQ stays."""
    weight = graph.constant(str(layer.weight.name), as_weight(layer.node, kernel, layer.values))
    reader, index = (layer.node, 1) if layer.pair is None else (layer.pair[0], 0)
    graph.set_inputs(reader, {index: weight})


def set_bias(graph: Graph, layer: LinearLayer, bias: np.ndarray) -> None:
    """Replaces the bias; shape (channels,)."""
    current = layer.node.inputs[2] if len(layer.node.inputs) > 2 else None
    name = f"{layer.node.name}_bias" if current is None else str(current.name)
    graph.set_inputs(layer.node, {2: graph.constant(name, bias.astype(layer.values.dtype))})


def set_scale(graph: Graph, layer: LinearLayer, scale: np.ndarray) -> None:
    """Replaces the weight scales of a calibrated layer, in their present shape."""
    assert layer.pair is not None
    name = str(layer.pair[0].inputs[1].name)  # type: ignore[union-attr]
    value = graph.constant(name, scale.astype(np.float32))
    for node in layer.pair:
        graph.set_inputs(node, {1: value})


def as_weight(node: Node, kernel: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The inverse of `as_kernel`, with the shape and type of `like`."""
    if node.op_type == "ConvTranspose":
        kernel = kernel.swapaxes(1, 2)
    elif node.op_type != "Conv":
        kernel = kernel[0, :, :, 0] if attribute(node, "transB", 0) else kernel[0, :, :, 0].T
    return kernel.reshape(like.shape).astype(like.dtype)
