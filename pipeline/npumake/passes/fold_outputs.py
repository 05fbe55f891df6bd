"""Computes model outputs that are independent of the inputs.

Each becomes an Identity of a constant: every target needs a node per output.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes.fold_constants import fold, is_constant, is_output


def fold_outputs(graph: Graph) -> int:
    outputs = (node for node in graph.nodes() if is_output(node) and node.op_type != "Identity")
    return sum(fold(graph, node) for node in outputs if is_constant(node))
