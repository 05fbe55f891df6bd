"""Converts half and double precision to float32: an NPU computes integers, and the rest is float32.

float16 and bfloat16 weights are exact in float32, and results are no longer rounded to 11 or 8
bits, which is closer to training. A model in float32 keeps the roundings that it has
(npumake.graph.half_rounding). float64 loses bits beyond any 8- or 16-bit code; values beyond
float32 saturate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from npumake.graph.graph import Graph
from npumake.graph.half_rounding import half_roundings, round_again

OTHERS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE})
MAX_FLOAT32 = float(np.finfo(np.float32).max)
TYPES = ("dtype", "output_datatype", "output_dtype", "to")  # attributes that name an element type


def in_single(graph: Graph) -> None:
    """Edits inputs, outputs, weights and inner values in place, also in branches."""
    roundings = half_roundings(graph)
    for scope in (graph.model.graph, *graph.model.graph.subgraphs()):
        for value in _values(scope):
            if value.dtype in OTHERS:
                value.dtype = ir.DataType.FLOAT
        for value in scope.initializers.values():
            if value.const_value is not None and value.const_value.dtype in OTHERS:
                value.const_value = _single(value.const_value)
        for node in scope:
            for item in tuple(node.attributes.values()):
                _edit_attribute(node, item)
    round_again(graph, roundings)


def _values(scope: ir.Graph) -> Iterator[ir.Value]:
    yield from scope.inputs
    yield from scope.initializers.values()
    for node in scope:
        yield from node.outputs


def _edit_attribute(node: ir.Node, item: ir.Attr) -> None:
    if item.type == ir.AttributeType.TENSOR and item.value.dtype in OTHERS:
        node.attributes[item.name] = ir.AttrTensor(item.name, _single(item.value))
    elif item.name in TYPES and item.value in OTHERS and not node.domain:
        node.attributes[item.name] = ir.AttrInt64(item.name, int(ir.DataType.FLOAT))


def _single(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    values = tensor.numpy()
    if tensor.dtype == ir.DataType.DOUBLE:
        finite = np.isfinite(values)
        values = np.where(finite, np.clip(values, -MAX_FLOAT32, MAX_FLOAT32), values)
    return ir.tensor(values.astype(np.float32), name=tensor.name)
