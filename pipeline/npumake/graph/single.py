"""Half and double precision as single: an NPU is fed integers, and the rest is float32.

A weight of float16 or bfloat16 is a float32 exactly. What was rounded to 11 or 8 bits on the way
is not any more, which is closer to what was trained. A float64 loses bits that no code of 8 or 16
has; what is beyond float32 becomes its largest number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from npumake.graph.graph import Graph

OTHERS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE})
MAX_FLOAT32 = float(np.finfo(np.float32).max)
TYPES = ("dtype", "output_datatype", "output_dtype", "to")  # attributes that name an element type


def in_single(graph: Graph) -> None:
    """Edit in place: inputs, outputs, weights and everything between, in branches too."""
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
