"""Output grids that the unit's kernels fix, independent of the calibration.

    SEATS        outputs on fixed grids: Softmax and Sigmoid 1/256, -128, and of int16 2**-15
    PRelu        slopes on an int8 grid
    ONE_GRID     input and output on one grid
    JOINING      all inputs on the grid of the output

The grids move before weights and biases become integers: a bias is on the grid of its layer's
input. Source: the checks in tensorflow/lite/kernels, `Prepare`.
"""

from __future__ import annotations

from npumake.engine.fusion import result
from npumake.engine.rules import has_kernel
from npumake.engine.tflite_rules import SEATS, slope_codes
from npumake.graph import Graph, Node, Value, array, is_kept_float
from npumake.graph.qdq import (
    Grid,
    dequantizer_of,
    dequantizers_of,
    insert_pair,
    quantizer_of,
    scalar_grid_of,
    set_grid,
    sole_quantizer,
    store_grid,
)
from npumake.kernels.affine import dequantize
from npumake.quant.precision.grids import grid
from npumake.quant.precision.placement import SAME_GRID_OPERATORS

ONE_GRID = SAME_GRID_OPERATORS | {"AveragePool"}
JOINING = frozenset({"Concat", "Max", "Min"})


def with_fixed_outputs(graph: Graph) -> Graph:
    """A copy of a Q/DQ graph on these grids."""
    graph = graph.copy()
    for node in graph.nodes():
        quantizer = sole_quantizer(result(node)) if node.outputs else None
        if quantizer is None or not _in_integers(node):
            continue
        own = _grid(quantizer)
        seat = SEATS.get((node.op_type, str(own.zero_point.dtype)))
        if seat:
            _move(graph, quantizer, grid(*seat, own.zero_point.dtype))
        elif node.op_type == "PRelu":
            _round_slopes(graph, node)
        elif node.op_type in ONE_GRID and (read := _read(node.inputs[0])):
            _move(graph, quantizer, read)
        elif node.op_type in JOINING:
            _bring_together(graph, node, own)
    return graph


def _in_integers(node: Node) -> bool:
    """Whether the node runs in integers. A float node outputs what it computes: a cubic Resize
    overshoots."""
    return has_kernel(node) and not is_kept_float(node)


def requantize_fixed_outputs(graph: Graph) -> None:
    """Keeps the model's own grids: the kernel outputs its fixed grid, and a second Q/DQ requantizes
    the result. Edits in place."""
    for node in graph.nodes():
        quantizer = sole_quantizer(result(node)) if node.outputs else None
        if quantizer is None or node.domain:
            continue
        own = _grid(quantizer)
        seat = SEATS.get((node.op_type, str(own.zero_point.dtype)))
        fixed = grid(*seat, own.zero_point.dtype) if seat else None
        if node.op_type in ONE_GRID:
            fixed = _read(node.inputs[0])
        if fixed is None or _is_same(fixed, own) or fixed.zero_point.dtype != own.zero_point.dtype:
            continue
        real = insert_pair(graph, result(node), fixed, f"{result(node).name}_seat").real
        graph.set_inputs(quantizer, {0: real})


def _round_slopes(graph: Graph, node: Node) -> None:
    slope, values = node.inputs[1], array(node.inputs[1])
    if slope is not None and values is not None:
        codes, scale = slope_codes(values)
        graph.set_inputs(node, {1: graph.constant(f"{slope.name}_rounded", codes * scale)})


def _bring_together(graph: Graph, node: Node, own: Grid) -> None:
    for index, value in enumerate(tuple(node.inputs)):
        read = _read(value)
        if value is None or read is None or _is_same(read, own):
            continue
        name = f"{value.name}_{node.name}"
        real = insert_pair(graph, _unrounded(graph, value), own, name, before=node).real
        graph.set_inputs(node, {index: real})


def _unrounded(graph: Graph, value: Value) -> Value:
    """A constant before its quantization, so that it is rounded once; else the value itself."""
    dequantizer = dequantizer_of(value)
    assert dequantizer is not None
    codes = dequantizer.inputs[0]
    quantizer = quantizer_of(codes)
    source = codes if quantizer is None else quantizer.inputs[0]
    constant = array(source)
    if source is None or constant is None:
        return value
    if quantizer is not None:
        return source
    own = _grid(dequantizer)
    return graph.constant(f"{value.name}_held", dequantize(constant, own.scale, own.zero_point))


def _move(graph: Graph, quantizer: Node, moved: Grid) -> None:
    """Moves a quantizer and the readers of its codes to another grid of the same type."""
    own = _grid(quantizer)
    if _is_same(own, moved) or own.zero_point.dtype != moved.zero_point.dtype:
        return
    parameters = store_grid(graph, str(quantizer.outputs[0].name), moved)
    set_grid(graph, [quantizer, *dequantizers_of(quantizer.outputs[0])], *parameters)


def _read(value: Value | None) -> Grid | None:
    return scalar_grid_of(dequantizer_of(value))


def _grid(node: Node) -> Grid:
    grid = scalar_grid_of(node)
    assert grid is not None
    return grid


def _is_same(a: Grid, b: Grid) -> bool:
    return bool(a.scale == b.scale and a.zero_point == b.zero_point)
