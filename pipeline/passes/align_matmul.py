"""A constant matrix with as many axes as what it is multiplied by, for a target that asks for it.

(…, M, K) x (K, N) -> (…, M, K) x (1, …, 1, K, N)        the same numbers

Not in PASSES: a target asks for it.
"""

from __future__ import annotations

from pipeline.graph import Graph, Node, array


def align_matmul(graph: Graph) -> int:
    return sum(_aligned(graph, node) for node in graph.nodes("MatMul"))


def _aligned(graph: Graph, node: Node) -> bool:
    data, weight = node.inputs[0], array(node.inputs[1])
    if data is None or weight is None or data.shape is None:
        return False
    missing = len(data.shape) - weight.ndim
    if missing < 1 or weight.ndim < 2:
        return False
    wide = weight.reshape((1,) * missing + weight.shape)
    graph.set_inputs(node, {1: graph.constant(f"{node.name}_weight", wide)})
    return True
