"""Activations of a quantized model in the types of TensorFlow Lite's kernels.

uint8           code - 128, zero point - 128: the same values in int8
uint16, int16   int16 with zero point 0, the only form of its 16-bit kernels: the scale grows until
                both ends fit, at most to twice, and a clamp keeps the nearer end; the quantizer
                had absorbed a Relu in front of a grid that begins at 0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npumake.engine.quantized_node import is_constant
from npumake.graph import Graph, Node, Value, producer
from npumake.graph.qdq import (
    QDQ_OPERATORS,
    Grid,
    grid_of,
    insert_dequantize,
    insert_pair,
    is_dequantize,
    is_quantize,
    set_grid,
    store_grid,
)

SIGNED_TYPES: Mapping[str, np.dtype[Any]] = {
    "uint8": np.dtype(np.int8),
    "uint16": np.dtype(np.int16),
}


def to_signed(graph: Graph) -> list[str]:
    """Edits in place; returns the names of 16-bit tensors whose scale changed."""
    rescaled: dict[str, None] = {}
    for node in graph.nodes(*QDQ_OPERATORS):
        own = grid_of(node)
        if own is None or own.zero_point.dtype.itemsize > 2 or is_constant(node.inputs[0]):
            continue
        grid = symmetric(_shifted(own))
        if grid.zero_point.dtype == own.zero_point.dtype and np.array_equal(grid.scale, own.scale):
            continue
        if not np.array_equal(grid.scale, own.scale) and is_quantize(node):
            rescaled[str(node.name)] = None
            _clamp(graph, node, own, grid)
        if node.inputs[0] is not None and node.inputs[0].is_graph_input() and is_dequantize(node):
            _regrid_fed(graph, node, grid)
        else:
            _set(graph, node, grid, own)
    return list(rescaled)


def _regrid_fed(graph: Graph, dequantizer: Node, grid: Grid) -> None:
    """Quantized model inputs keep their type; Q/DQ of the other grid follows behind them."""
    real = dequantizer.outputs[0]
    readers = [use.node for use in tuple(real.uses())]
    graph.replace_readers(real, insert_pair(graph, real, grid, f"{real.name}_signed").real, readers)


def _clamp(graph: Graph, quantizer: Node, own: Grid, grid: Grid) -> None:
    """Clamps the end where the wider grid no longer saturates: in front of the quantizer, or behind
    a model input."""
    x, limits = quantizer.inputs[0], np.iinfo(own.zero_point.dtype)
    zero_point = int(own.zero_point)
    low, high = (float(own.scale) * (end - zero_point) for end in (limits.min, limits.max))
    assert x is not None
    if producer(x) is None:
        x = insert_pair(graph, x, grid, f"{x.name}_wide", before=quantizer).real
    graph.set_inputs(quantizer, {0: _clamped(graph, x, low, high, quantizer)})


def _clamped(graph: Graph, x: Value, low: float, high: float, before: Node) -> Value:
    name = f"{x.name}_clamped"
    if low == 0:
        return graph.insert("Relu", [x], name, before=before)
    ends = [
        graph.constant(f"{name}_{end}", np.array(real, np.float32)) if is_near else None
        for end, real, is_near in (("low", low, -low < high), ("high", high, high < -low))
    ]
    return graph.insert("Clip", [x, *ends], name, before=before)


def symmetric(grid: Grid) -> Grid:
    """A 16-bit grid with zero point 0 that reaches as far; any other grid unchanged."""
    limits = np.iinfo(grid.zero_point.dtype)
    if limits.bits < 16 or not grid.zero_point.any():
        return grid
    zero_point = grid.zero_point.astype(np.int64)
    reach = np.maximum(zero_point - limits.min, limits.max - zero_point)
    scale = (grid.scale.astype(np.float64) * reach / limits.max).astype(np.float32)
    return Grid(scale, np.zeros_like(grid.zero_point))


def _shifted(grid: Grid) -> Grid:
    """The grid of the same values in the signed type."""
    kind = SIGNED_TYPES.get(str(grid.zero_point.dtype))
    if kind is None:
        return grid
    return Grid(grid.scale, (grid.zero_point.astype(np.int64) + np.iinfo(kind).min).astype(kind))


def _set(graph: Graph, node: Node, grid: Grid, own: Grid) -> None:
    set_grid(graph, [node], *store_grid(graph, str(node.outputs[0].name), grid))
    if is_quantize(node):
        codes = node.outputs[0]
        graph.set_type(codes, str(grid.zero_point.dtype))
        if codes.is_graph_output():
            _give_as_before(graph, codes, grid, own)


def _give_as_before(graph: Graph, codes: Value, grid: Grid, own: Grid) -> None:
    """Model outputs keep the type of their codes."""
    name = str(codes.name)
    parameters = [graph.constant(f"{name}_inner", values) for values in grid]
    real = insert_dequantize(graph, codes, parameters, f"{name}_real")
    converted = insert_pair(graph, real, own, name).codes
    graph.set_type(converted, str(own.zero_point.dtype))
    graph.replace_output(codes, converted)
