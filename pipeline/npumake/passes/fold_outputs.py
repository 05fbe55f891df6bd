"""Outputs of the model that are known before anything is fed, computed now.

An Identity of the constant is what makes each: an output has a node, on every target.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes.fold_constants import fold, is_constant, is_output


def fold_outputs(graph: Graph) -> int:
    outputs = (node for node in graph.nodes() if is_output(node) and node.op_type != "Identity")
    return sum(fold(graph, node) for node in outputs if is_constant(node))
