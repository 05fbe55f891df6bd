"""Normalizes Q/DQ: ONNX's domain, explicit zero points, types that targets support.

com.microsoft                    ONNX's own operator of that name
no zero point                    0, of the type of the codes
4 bits behind a DQ, constant     the same codes in 8 bits
blocks, float8, 4 bits computed  refused
16 bits                          opset 21, where they are ONNX's own
"""

from __future__ import annotations

import numpy as np

from npumake.errors import GraphError
from npumake.graph import (
    Graph,
    Node,
    allow_int16,
    array,
    attribute,
    dtype,
    type_name,
    upgraded,
)
from npumake.graph.qdq import axis_of, is_dequantize, is_qdq, is_quantize, quantizer_of

NIBBLES = {"int4": "int8", "uint4": "uint8"}
BYTES = frozenset({"int8", "uint8"})
WORDS = frozenset({"int16", "uint16"})
SUMS = frozenset({"int32"})  # of a bias
SAME_MEANING_OPSET = 20  # opset 21 only adds types to this one
HINT = "quantize it again with int8 or int16, and one scale for each tensor or channel"


def has_strange_pairs(graph: Graph) -> bool:
    """Whether some Q or DQ needs normalizing."""
    return any(_is_strange(node) for node in pairs_of(graph))


def pairs_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes() if is_qdq(node)]


def spell(graph: Graph) -> Graph:
    """Edits in place, or returns a copy at a later opset. Raises GraphError for types that no
    target supports."""
    for node in pairs_of(graph):
        graph.become(node, node.op_type, node.inputs, **_attributes(node))
        _complete(graph, node)
        _widen(graph, node)
    types = {kind for node in pairs_of(graph) if (kind := _type(node)) is not None}
    if types & WORDS:
        graph = graph if graph.opset >= SAME_MEANING_OPSET else upgraded(graph)
        allow_int16(graph)
    return graph


def _is_strange(node: Node) -> bool:
    plain = not node.domain and len(node.inputs) == 3 and node.inputs[2] is not None
    return (
        not plain or _type(node) not in BYTES | SUMS | WORDS or bool(attribute(node, "block_size"))
    )


def _attributes(node: Node) -> dict[str, int]:
    """The attributes that still matter. Raises GraphError for block scales."""
    if attribute(node, "block_size", 0):
        raise GraphError(f"`{node.name}` has a scale for each block of a tensor", hint=HINT)
    scale = array(node.inputs[1])
    per_axis = scale is None or scale.size > 1
    return {"axis": axis_of(node)} if per_axis else {}


def _type(node: Node) -> str | None:
    """Type of the codes, as far as it is known without inferred shapes."""
    zero_point = node.inputs[2] if len(node.inputs) > 2 else None
    if zero_point is not None and zero_point.dtype is not None:
        return dtype(zero_point)
    if is_quantize(node):
        number = attribute(node, "output_dtype", 0)
        return type_name(number) if number else "uint8"
    codes = node.inputs[0]
    if codes is None or codes.dtype is not None:
        return None if codes is None else dtype(codes)
    quantizer = quantizer_of(codes)
    return "uint8" if quantizer is None else _type(quantizer)


def _complete(graph: Graph, node: Node) -> None:
    """Adds an explicit zero point of the scale's shape."""
    kind = _type(node)
    supported = NIBBLES.keys() | BYTES | WORDS | SUMS
    if kind not in supported:
        message = f"`{node.name}` outputs codes of {kind or 'no known type'}"
        raise GraphError(message, hint=HINT)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        return
    scale = array(node.inputs[1])
    if scale is None:
        return  # computed: refused where the grid is read
    zeros = np.zeros(scale.shape, NIBBLES.get(kind, kind))
    graph.set_inputs(node, {2: graph.constant(f"{node.name}_zero_point", zeros)})


def _widen(graph: Graph, node: Node) -> None:
    """Stores constant 4-bit codes in 8 bits, with the same scale."""
    value, codes, zero_point = node.inputs[0], array(node.inputs[0]), array(node.inputs[2])
    stored = _type(node) if value is None or value.dtype is None else dtype(value)
    kind = stored if stored in NIBBLES else _type(node)
    if kind not in NIBBLES:
        return
    if not is_dequantize(node) or codes is None or zero_point is None or value is None:
        raise GraphError(f"`{node.name}` outputs codes of 4 bits", hint=HINT)
    wide = np.dtype(NIBBLES[kind])
    inputs = {
        0: graph.constant(f"{value.name}_of_8_bits", codes.astype(wide)),
        2: graph.constant(f"{node.name}_zero_point", zero_point.astype(wide)),
    }
    graph.set_inputs(node, inputs)
