"""Integer weights and biases from Q/DQ on float weights.

A bias is added to the accumulator of x * w, so it is on the accumulator's grid:

    scale_b = scale_x * scale_w (per channel)      b_q = rint(b / scale_b)      int32, zero point 0

With int16 weights b_q has up to 45 bits, but DequantizeLinear takes 32. Then b_q * 2**-k is stored,
rounded, with the scale scale_b * 2**k of its channel; the error is far below one output code.
onnxruntime must not round a float bias: it wraps at 32 bits.
"""

from __future__ import annotations

import numpy as np

from npumake.engine.grids import has_wide_weight
from npumake.engine.rules import RULES
from npumake.errors import StageError
from npumake.graph import Graph, Node, Value, array, complete, declare
from npumake.graph.qdq import (
    QUANTIZE,
    grid_behind,
    insert_dequantize,
    rounded_codes,
)
from npumake.quant.qdq.insert import groups_of_scales

BIAS_BITS = 30  # rounding never reaches 2**31


def with_integer_weights(graph: Graph) -> Graph:
    """A copy with every quantized constant stored as integers behind one DequantizeLinear. Raises
    StageError for a bias beyond int32."""
    graph = graph.copy()
    for node in graph.nodes(QUANTIZE):
        if array(node.inputs[0]) is not None:
            _store_codes(graph, node)
    for node in _with_bias(graph):
        _store_bias(graph, node)
    graph.drop_unused()
    return complete(graph)


def _store_codes(graph: Graph, quantizer: Node) -> None:
    codes = rounded_codes(quantizer)
    assert codes is not None
    stored = graph.constant(f"{_name(quantizer.inputs[0])}_codes", codes)
    graph.replace_uses(quantizer.outputs[0], stored)
    graph.remove(quantizer)


def _store_bias(graph: Graph, node: Node) -> None:
    bias = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if bias is None:
        return
    x, w = (grid_behind(node.inputs[index]) for index in (0, 1))
    if x is None or w is None:
        return
    scale = x.scale.reshape(-1) * w.scale.reshape(-1)
    scale = np.tile(scale, groups_of_scales(node))
    if has_wide_weight(node):
        scale = _coarsened(scale, bias.reshape(-1))
    codes = np.rint(bias.reshape(-1).astype(np.float64) / scale)  # one bias may serve all channels
    if np.abs(codes).max(initial=0) > np.iinfo(np.int32).max:
        raise StageError("a bias does not fit int32 on the grid of its weights", str(node.name))
    name = _name(node.inputs[2])
    stored = graph.constant(f"{name}_codes", codes.astype(np.int32))
    step = graph.constant(f"{name}_scale", scale)
    zero_point = graph.constant(f"{name}_zero_point", np.zeros(scale.size, np.int32))
    real = insert_dequantize(
        graph, stored, (step, zero_point), f"{name}_dequantized", before=node, axis=0
    )
    declare(real, codes.shape, step)
    graph.set_inputs(node, {2: real})


def store_wide_biases(graph: Graph) -> Graph:
    """A copy in which every bias of int16 weights is stored as integers."""
    graph = graph.copy()
    for node in _with_bias(graph):
        if has_wide_weight(node):
            _store_bias(graph, node)
    return complete(graph)


def _with_bias(graph: Graph) -> list[Node]:
    """The nodes that may have a bias."""
    layers = (node for node in graph.nodes() if not node.domain and node.op_type in RULES)
    return [node for node in layers if 2 in RULES[node.op_type].weights]


def _coarsened(scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Each scale times the power of two with which its bias fits 32 bits."""
    codes = np.abs(np.broadcast_to(bias, scale.shape).astype(np.float64) / scale)
    bits = np.frexp(codes)[1]
    return np.ldexp(scale, np.maximum(bits - BIAS_BITS, 0)).astype(scale.dtype)


def _name(value: Value | None) -> str:
    return "" if value is None else str(value.name)
