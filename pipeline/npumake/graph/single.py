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
LARGEST = float(np.finfo(np.float32).max)
TYPES = ("dtype", "output_datatype", "output_dtype", "to")  # attributes that name an element type


def in_single(graph: Graph) -> None:
    """Edit in place: inputs, outputs, weights and everything between, in branches too."""
    for held in (graph.model.graph, *graph.model.graph.subgraphs()):
        for value in _values(held):
            if value.dtype in OTHERS:
                value.dtype = ir.DataType.FLOAT
        for value in held.initializers.values():
            if value.const_value is not None and value.const_value.dtype in OTHERS:
                value.const_value = _single(value.const_value)
        for node in held:
            for given in tuple(node.attributes.values()):
                _edit_attribute(node, given)


def _values(held: ir.Graph) -> Iterator[ir.Value]:
    yield from held.inputs
    yield from held.initializers.values()
    for node in held:
        yield from node.outputs


def _edit_attribute(node: ir.Node, given: ir.Attr) -> None:
    if given.type == ir.AttributeType.TENSOR and given.value.dtype in OTHERS:
        node.attributes[given.name] = ir.AttrTensor(given.name, _single(given.value))
    elif given.name in TYPES and given.value in OTHERS and not node.domain:
        node.attributes[given.name] = ir.AttrInt64(given.name, int(ir.DataType.FLOAT))


def _single(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    values = tensor.numpy()
    if tensor.dtype == ir.DataType.DOUBLE:
        finite = np.isfinite(values)
        values = np.where(finite, np.clip(values, -LARGEST, LARGEST), values)
    return ir.tensor(values.astype(np.float32), name=tensor.name)
