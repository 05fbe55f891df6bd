"""Gemm as a 1x1 Conv over an image of one pixel, for a chip that only has the Conv.

    (N, C) -> Reshape (N, C, 1, 1) -> Conv with weight (O, C, 1, 1) -> Reshape (N, O)

Both Reshapes keep the grid of their input, so all codes stay the same. The Conv takes the name of
the Gemm, and the codes behind the second Reshape that of the Gemm's output. With an int32 output
that Reshape runs on the CPU. A Gemm on the CPU stays a Gemm.
"""

from __future__ import annotations

import numpy as np

from npumake.engine.fusion import result
from npumake.graph import (
    Graph,
    Node,
    Value,
    declare,
    hands_out_sums,
    keep_float,
    open_dimensions,
    producer,
    run_on_unit,
    shape,
)
from npumake.graph.qdq import Grid, grid_of, insert_pair, sole_quantizer
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers


def gemm_as_conv(graph: Graph) -> int:
    """Edits a calibrated graph with float weights behind Q/DQ in place; returns the number of
    rewritten nodes."""
    layers = [layer for layer in quantized_layers(graph) if layer.node.op_type == "Gemm"]
    quantized = [(layer, q) for layer in layers if (q := _quantizer(layer.node)) is not None]
    sums = [layer for layer in layers if hands_out_sums(layer.node)]
    for gemm in sums:
        _rewrite_sums(graph, gemm)
    for gemm, quantizer in quantized:
        _rewrite(graph, gemm, quantizer)
    if quantized or sums:
        graph.drop_unused()
    return len(quantized) + len(sums)


def _quantizer(gemm: Node) -> Node | None:
    """The Q behind the Gemm and its clamp, if nothing else reads them."""
    output = result(gemm)
    return None if open_dimensions(output) else sole_quantizer(output)


def _rewrite(graph: Graph, gemm: LinearLayer, quantizer: Node) -> None:
    convolved = _as_conv(graph, gemm)
    pixel = insert_pair(graph, convolved, _grid(quantizer), f"{gemm.node.name}_pixel").real
    graph.set_inputs(quantizer, {0: _matrix(graph, gemm, pixel)})


def _rewrite_sums(graph: Graph, gemm: LinearLayer) -> None:
    readers = [use.node for use in tuple(gemm.y.uses())]
    convolved = _as_conv(graph, gemm)
    matrix = _matrix(graph, gemm, convolved)
    reshape = producer(matrix)
    assert reshape is not None
    keep_float(reshape)
    graph.replace_readers(convolved, matrix, readers)
    if convolved.is_graph_output():
        graph.replace_output(convolved, matrix)
    else:
        graph.rename(matrix, str(convolved.name), holder=convolved)


def _as_conv(graph: Graph, gemm: LinearLayer) -> Value:
    """The Conv's output, behind the clamp it absorbs: (N, O, 1, 1)."""
    node, output = gemm.node, result(gemm.node)
    dims = (*shape(output), 1, 1)
    graph.become(node, "Conv", [_image(graph, gemm), _kernel(graph, gemm), *node.inputs[2:3]])
    for value in (node.outputs[0], output):
        declare(value, dims, output)
    return output


def _matrix(graph: Graph, gemm: LinearLayer, pixel: Value) -> Value:
    """(N, O) of (N, O, 1, 1)."""
    name, dims = f"{gemm.node.name}_matrix", shape(pixel)[:2]
    flat = graph.constant(f"{name}_shape", np.array(dims, np.int64))
    matrix = graph.insert("Reshape", [pixel, flat], name, producer(pixel))
    _on_the_unit(matrix)
    declare(matrix, dims, pixel)
    return matrix


def _image(graph: Graph, gemm: LinearLayer) -> Value:
    """The Gemm's input as (N, C, 1, 1)."""
    dims, dequantizer = (*shape(gemm.x), 1, 1), producer(gemm.x)
    assert dequantizer is not None
    name = f"{gemm.node.name}_image"
    sizes = graph.constant(f"{name}_shape", np.array(dims, np.int64))
    image = graph.insert("Reshape", [gemm.x, sizes], name, before=gemm.node)
    _on_the_unit(image)
    return insert_pair(graph, image, _grid(dequantizer), name).real


def _on_the_unit(view: Value) -> None:
    """Marks a view: a matrix and an image of one pixel have the same codes in the same order."""
    maker = producer(view)
    assert maker is not None
    run_on_unit(maker)


def _kernel(graph: Graph, gemm: LinearLayer) -> Value:
    """The weight as (O, C, 1, 1) behind Q/DQ, on its own grid."""
    assert gemm.pair is not None
    name = f"{gemm.node.name}_kernel"
    weight = gemm.kernel()[0].astype(gemm.values.dtype)  # (outputs, inputs, 1)
    value = graph.constant(name, weight[..., None])
    return insert_pair(graph, value, _grid(gemm.pair[0]), name, axis=0, before=gemm.node).real


def _grid(node: Node) -> Grid:
    """The grid of a Q or DQ."""
    grid = grid_of(node)
    assert grid is not None
    return grid
