"""int16 share: the part of a model's multiply-accumulates that reads 16-bit activations.

    share = sum of macs that read int16 / sum of all macs

over Conv, ConvTranspose, Gemm and MatMul, those on the CPU included. A layer that makes int16 of 8
bits multiplies as before and does not count; one that reads int16 through any operand counts in
full. Arithmetic without weights has no multiply-accumulates. Sizes are those of one sample.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from npumake.engine.fusion import result
from npumake.engine.quantized_node import is_constant
from npumake.graph import Graph, Node, Value, shape
from npumake.graph.qdq import codes_dtype, dequantizer_of, first_quantizer
from npumake.project.sections import Quantization
from npumake.quant.precision.precision_plan import PrecisionPlan
from npumake.quant.precision.type_propagation import (
    ACCUMULATING_OPERATORS,
    OUT,
    WIDE,
    propagate_int16,
)
from npumake.quant.precision.type_requests import requested_types
from npumake.targets.target import Target

SHARE_DIGITS = 6
SIXTEEN_BITS = (np.dtype(np.int16), np.dtype(np.uint16))


def multiply_accumulates(node: Node) -> int:
    """Those of a linear node; 0 for any other."""
    if node.domain or node.op_type not in ACCUMULATING_OPERATORS:
        return 0
    output = shape(node.outputs[0])
    sizes = [shape(value) for value in node.inputs[:2] if value is not None]
    if node.op_type == "Conv":
        return prod(output) * prod(sizes[1][1:])
    if node.op_type == "ConvTranspose":
        return prod(sizes[0]) * prod(sizes[1][1:])
    return prod(output) * prod(sizes[0]) // max(prod(output[:-1]), 1)


def int16_share(graph: Graph) -> float:
    """The share of a graph with Q/DQ, 0 ... 1; 0 without multiply-accumulates."""
    return _share(graph, _reads_int16)


def planned_share(graph: Graph, plan: PrecisionPlan) -> float:
    """The share that the float `graph` will have with the types of the plan."""
    wide = {node for (node, _), kind in plan.reads.items() if kind == WIDE}
    return _share(graph, wide.__contains__)


def typed_share(
    graph: Graph, plan: PrecisionPlan, quantization: Quantization, target: Target
) -> float:
    """The share with the types of `quantization`, on the nodes of the plan: types of tensors change
    no node's place."""
    requests = requested_types(graph, quantization).by_use
    wide = propagate_int16(graph, plan.nodes, requests, target).wide
    reading = {use[0] for use in wide if isinstance(use, tuple) and use[1] != OUT}
    return _share(graph, reading.__contains__)


def _share(graph: Graph, reads_int16: Callable[[Node], bool]) -> float:
    counts = {node: count for node in graph.nodes() if (count := multiply_accumulates(node))}
    wide = sum(count for node, count in counts.items() if reads_int16(node))
    return round(wide / sum(counts.values()), SHARE_DIGITS) if counts else 0.0


def _reads_int16(node: Node) -> bool:
    return _is_quantized(node) and any(map(_is_int16, node.inputs[:2]))


def _is_quantized(node: Node) -> bool:
    """Whether the node computes in codes. On the CPU, weights have no Q/DQ, and the product of two
    activations is not quantized."""
    weight = node.inputs[1]
    if is_constant(weight):
        return dequantizer_of(weight) is not None
    return first_quantizer(result(node)) is not None


def _is_int16(value: Value | None) -> bool:
    dequantizer = None if is_constant(value) else dequantizer_of(value)
    return dequantizer is not None and codes_dtype(dequantizer) in SIXTEEN_BITS
