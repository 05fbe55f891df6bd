"""Dequantizes parameters that a quantizer stored as codes.

The scale of a normalization, or the table of a Gather, is neither a weight nor an operand, and
nothing computes on its codes. Folding its DQ lets other passes see the values.
"""

from __future__ import annotations

from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.graph import Graph
from npumake.graph.qdq import is_qdq, stored_constant


def real_parameters(graph: Graph) -> int:
    count = 0
    for node in graph.nodes():
        if is_qdq(node) or node.op_type in CONSTANT_OPERANDS:
            continue
        weights = RULES[node.op_type].weights if node.op_type in RULES else ()
        for index, value in enumerate(tuple(node.inputs)):
            constant = None if index in weights else stored_constant(value)
            if constant is not None and value is not None:
                real = graph.constant(f"{value.name}_real", constant.real)
                graph.set_inputs(node, {index: real})
                count += 1
    return count
