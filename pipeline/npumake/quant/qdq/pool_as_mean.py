"""GlobalAveragePool on int16 as ReduceMean, for a chip that only documents the latter on int16.

    (N, C, H, W) -> ReduceMean over H and W, which are kept

The engine computes both in one way, so all codes stay the same. A graph with int16 has opset 21
(graph.opset), where the axes are an input.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, shape
from npumake.graph.qdq import grid_behind
from npumake.targets.target import INT16_AS, Target


def pool_as_mean(graph: Graph, target: Target) -> int:
    """Edits a calibrated graph in place; returns the number of rewritten nodes."""
    pools = [node for node in graph.nodes(*INT16_AS) if target.int16_as(node.op_type)]
    int16_pools = [node for node in pools if _is_int16(node.inputs[0])]
    for node in int16_pools:
        _rewrite(graph, node)
    return len(int16_pools)


def _is_int16(value: Value | None) -> bool:
    grid = grid_behind(value)
    return grid is not None and grid.zero_point.dtype.itemsize > 1


def _rewrite(graph: Graph, pool: Node) -> None:
    x = pool.inputs[0]
    assert x is not None
    axes = np.arange(2, len(shape(x)), dtype=np.int64)
    read = graph.constant(f"{pool.name}_axes", axes)
    graph.become(pool, INT16_AS[pool.op_type], [x, read], keepdims=1)
