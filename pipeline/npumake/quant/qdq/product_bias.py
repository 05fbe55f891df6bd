"""The bias behind a MatMul as that of a Gemm, which rounds once where the two nodes round twice.

    MatMul (..., I) by (I, O) -> Q/DQ -> Add of a constant (O,) -> Q
    Reshape (N, I) -> Q/DQ -> Gemm with the bias -> Q/DQ -> Reshape (..., O) -> Q

Exporters write the linear layers of transformers so. Both Reshapes keep the grid of their input.
The Gemm takes the name of the Add. A bias on a chip whose tool divides a model in a published form
stays an Add.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from npumake.engine.fusion import result
from npumake.graph import Graph, Node, Value, array, declare, open_dimensions, producer, shape
from npumake.graph.qdq import (
    Grid,
    dequantizer_of,
    dequantizers_of,
    grid_behind,
    grid_of,
    insert_pair,
    pair_of,
    sole_quantizer,
)
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers
from npumake.quant.qdq.integers import BIAS_BITS
from npumake.targets.target import Target

OPERATORS = ("Gemm", "Reshape")


class _Biased(NamedTuple):
    """A product, the Add behind its Q/DQ, the constant, and the Q behind the Add."""

    product: LinearLayer
    add: Node
    bias: np.ndarray
    quantizer: Node


def product_bias(graph: Graph, target: Target) -> int:
    """Edits a calibrated graph with float weights behind Q/DQ in place; returns the number of
    rewritten nodes."""
    if target.form is not None or not all(target.runs(name) for name in OPERATORS):
        return 0
    products = [layer for layer in quantized_layers(graph) if layer.node.op_type == "MatMul"]
    biased = [pair for layer in products if (pair := _biased(layer)) is not None]
    for pair in biased:
        _rewrite(graph, pair)
    if biased:
        graph.drop_unused()
    return len(biased)


def _biased(product: LinearLayer) -> _Biased | None:
    """The product with its bias, if both are int8 and nothing else reads what is between them."""
    inner = sole_quantizer(product.y)
    readers = [] if inner is None else dequantizers_of(inner.outputs[0])
    if inner is None or len(readers) != 1 or len(inner.outputs[0].uses()) != 1:
        return None
    uses = [*readers[0].outputs[0].uses()]
    add = uses[0].node if len(uses) == 1 else None
    if add is None or add.op_type != "Add" or readers[0].outputs[0].is_graph_output():
        return None
    bias = _constant(add.inputs[1 - uses[0].idx], product.channels)
    quantizer = sole_quantizer(result(add))
    if bias is None or quantizer is None or not _is_plain(product, add, quantizer):
        return None
    return _Biased(product, add, bias, quantizer) if _fits(product, bias) else None


def _constant(value: Value | None, channels: int) -> np.ndarray | None:
    """(channels,) of a constant that has one value for each channel, or one for all; before its
    Q/DQ."""
    pair = pair_of(value)
    values = array(value if pair is None else pair[0].inputs[0])
    if values is None or values.shape[-1:] not in ((), (1,), (channels,)):
        return None
    if values.size != math.prod(values.shape[-1:]):
        return None
    return np.broadcast_to(values.reshape(-1), channels).astype(np.float32)


def _is_plain(product: LinearLayer, add: Node, quantizer: Node) -> bool:
    """Whether shapes are known, the Add keeps that of the product, and codes are int8."""
    values = (product.x, product.y, add.outputs[0])
    if any(value.shape is None or open_dimensions(value) for value in values):
        return False
    nodes = (quantizer, dequantizer_of(product.x), dequantizer_of(product.node.inputs[1]))
    grids = [None if node is None else grid_of(node) for node in nodes]
    is_narrow = all(grid is not None and grid.zero_point.dtype.itemsize == 1 for grid in grids)
    return is_narrow and shape(product.y) == shape(add.outputs[0]) and shape(product.x) != ()


def _fits(product: LinearLayer, bias: np.ndarray) -> bool:
    """Whether the bias has int32 codes on the grid of the sums, with room for these."""
    x, weight = grid_behind(product.x), grid_behind(product.node.inputs[1])
    assert x is not None
    assert weight is not None
    steps = x.scale.astype(np.float64).reshape(-1) * weight.scale.reshape(-1)
    return bool((np.abs(bias) < steps * 2.0**BIAS_BITS).all())


def _rewrite(graph: Graph, biased: _Biased) -> None:
    layer, add, bias, quantizer = biased
    dims, (inputs, outputs) = shape(layer.y), layer.values.shape
    count = math.prod(dims[:-1])
    rows = _rows(graph, layer, add, (count, inputs))
    weight = layer.node.inputs[1]
    constant = graph.constant(f"{add.name}_bias", bias)
    graph.become(add, "Gemm", [rows, weight, constant])
    graph.absorb(add, layer.node)
    for value in (add.outputs[0], result(add)):
        declare(value, (count, outputs), value)
    whole = insert_pair(graph, result(add), _grid(quantizer), f"{add.name}_rows").real
    sizes = graph.constant(f"{add.name}_dims", np.array(dims, np.int64))
    output = graph.insert("Reshape", [whole, sizes], f"{add.name}_whole", producer(whole))
    declare(output, dims, whole)
    graph.set_inputs(quantizer, {0: output})


def _rows(graph: Graph, layer: LinearLayer, add: Node, dims: tuple[int, int]) -> Value:
    """The input as a matrix, behind Q/DQ on its grid."""
    dequantizer = dequantizer_of(layer.x)
    assert dequantizer is not None
    name = f"{layer.node.name}_rows"
    sizes = graph.constant(f"{name}_dims", np.array(dims, np.int64))
    rows = graph.insert("Reshape", [layer.x, sizes], name, before=add)
    declare(rows, dims, layer.x)
    return insert_pair(graph, rows, _grid(dequantizer), name).real


def _grid(node: Node) -> Grid:
    """The grid of a Q or DQ."""
    grid = grid_of(node)
    assert grid is not None
    return grid
