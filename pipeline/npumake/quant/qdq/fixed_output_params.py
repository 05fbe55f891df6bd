"""Output grids that the unit's kernels fix, whatever the calibration found.

    SEATS        outputs on fixed grids: Softmax and Sigmoid 1/256, -128, and of int16 2**-15
    PRelu        slopes on an int8 grid
    ONE_GRID     input and output on one grid
    JOINING      all inputs on the grid of the output

The grids move before weights and biases become integers: a bias lies on the grid of its layer's
input. Source: the checks in tensorflow/lite/kernels, `Prepare`.
"""

from __future__ import annotations

import numpy as np

from npumake.engine.fusion import result
from npumake.engine.rules import has_kernel
from npumake.engine.tflite_rules import SEATS, slope_codes
from npumake.graph import Graph, Node, Value, array, is_kept_float, only_consumer, producer
from npumake.kernels.affine import dequantize
from npumake.quant.precision.grids import Grid, grid
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.qdq.pairs import DQ, Q, pair

ONE_GRID = SAME_GRID_OPERATORS | {"AveragePool"}
JOINING = frozenset({"Concat", "Max", "Min"})


def with_fixed_outputs(graph: Graph) -> Graph:
    """A copy of a Q/DQ graph on these grids."""
    graph = graph.copy()
    for node in graph.nodes():
        quantizer = only_consumer(result(node)) if node.outputs else None
        if quantizer is None or quantizer.op_type != Q or not _in_integers(node):
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
        quantizer = only_consumer(result(node)) if node.outputs else None
        if quantizer is None or quantizer.op_type != Q or node.domain:
            continue
        own = _grid(quantizer)
        seat = SEATS.get((node.op_type, str(own.zero_point.dtype)))
        fixed = grid(*seat, own.zero_point.dtype) if seat else None
        if node.op_type in ONE_GRID:
            fixed = _read(node.inputs[0])
        if fixed is None or _is_same(fixed, own) or fixed.zero_point.dtype != own.zero_point.dtype:
            continue
        real = pair(graph, result(node), fixed, f"{result(node).name}_seat").real
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
        real = pair(graph, _unrounded(graph, value), own, name, before=node).real
        graph.set_inputs(node, {index: real})


def _unrounded(graph: Graph, value: Value) -> Value:
    """A constant before its quantization, so that it is rounded once; else the value itself."""
    dequantizer = producer(value)
    assert dequantizer is not None
    codes = dequantizer.inputs[0]
    quantizer = None if codes is None else producer(codes)
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
    name = str(quantizer.outputs[0].name)
    scale = graph.constant(f"{name}_scale", np.asarray(moved.scale, np.float32))
    zero_point = graph.constant(f"{name}_zero_point", np.asarray(moved.zero_point))
    readers = [use.node for use in quantizer.outputs[0].uses() if use.node.op_type == DQ]
    for node in (quantizer, *readers):
        graph.set_inputs(node, {1: scale, 2: zero_point})


def _read(value: Value | None) -> Grid | None:
    maker = None if value is None else producer(value)
    return _grid(maker) if maker is not None and maker.op_type == DQ else None


def _grid(node: Node) -> Grid:
    scale, zero_point = array(node.inputs[1]), array(node.inputs[2])
    assert scale is not None
    assert zero_point is not None
    return Grid(scale.reshape(()), zero_point.reshape(()))


def _is_same(a: Grid, b: Grid) -> bool:
    return bool(a.scale == b.scale and a.zero_point == b.zero_point)
