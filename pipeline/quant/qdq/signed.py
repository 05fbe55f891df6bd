"""A model of uint8 as one of int8, for arithmetic that has no other: TensorFlow Lite's, today.

activation   code - 128, zero point - 128: the same values
weight       real again, so that it gets the target's grid, whose zero point is 0
bias         real again, so that it lies on the grid of that weight's products
"""

from __future__ import annotations

import numpy as np

from pipeline.graph import Graph, Node, array, attribute, declare, shape
from pipeline.kernels import affine
from pipeline.quant.precision.grids import Grid
from pipeline.quant.precision.widening import ACCUMULATING
from pipeline.quant.qdq.insert import channel_axis
from pipeline.quant.qdq.pairs import DQ, Q, pair


def signed(graph: Graph) -> Graph:
    """A copy of a graph that carries grids; one without uint8 is as it was."""
    graph = graph.copy()
    if not any(_is_unsigned(node) for node in graph.nodes(Q, DQ)):
        return graph
    for node in graph.nodes(Q, DQ):
        if node.op_type == DQ and array(node.inputs[0]) is not None:
            _make_symmetric(graph, node)
        elif _is_unsigned(node):
            _shift(graph, node)
    graph.drop_unused()
    return graph.with_shapes()


def _is_unsigned(node: Node) -> bool:
    zero_point = array(node.inputs[2]) if len(node.inputs) > 2 else None
    return zero_point is not None and zero_point.dtype == np.uint8


def _make_symmetric(graph: Graph, node: Node) -> None:
    codes, scale, zero_point = (array(value) for value in node.inputs)
    assert codes is not None
    assert scale is not None
    assert zero_point is not None
    axis = attribute(node, "axis", 1)
    grid = affine.per_axis(scale, codes.ndim, axis), affine.per_axis(zero_point, codes.ndim, axis)
    made, readers = node.outputs[0], [use.node for use in node.outputs[0].uses()]
    real = graph.constant(f"{made.name}_real", affine.dequantize(codes, *grid).astype(np.float32))
    graph.replace_uses(made, real)
    graph.remove(node)
    if codes.dtype != np.uint8 or scale.size > 1 or readers[0].op_type not in ACCUMULATING:
        return
    axis = channel_axis(readers[0])
    sizes = np.abs(codes.astype(np.int16) - zero_point.reshape(()))
    steps = sizes.max(axis=affine.other_axes(codes.ndim, axis))
    scales = (scale.reshape(()) * np.maximum(steps / 127, 1.0)).astype(np.float32)
    symmetric = Grid(scales, np.zeros(scales.shape, np.int8))
    weight = pair(graph, real, symmetric, str(made.name), axis=axis, before=readers[0]).real
    graph.set_inputs(readers[0], {1: weight})


def _shift(graph: Graph, node: Node) -> None:
    zero_point = array(node.inputs[2])
    assert zero_point is not None
    less = np.asarray(zero_point.astype(np.int16) - 128, np.int8)
    old = node.outputs[0]
    given = graph.constant(f"{old.name}_zero_point", less)
    if node.op_type == DQ:
        graph.set_inputs(node, {2: given})
        return
    codes = graph.insert(Q, [*node.inputs[:2], given], f"{old.name}_signed", before=node)
    declare(codes, shape(old), given)
    graph.replace_uses(old, codes)
    graph.remove(node)
