"""A Sum of many tensors as binary Adds, which chips support.

Sum(a, b, c) -> (a + b) + c        Mean(a, b, c) -> ((a + b) + c) * (1 / 3)

A Mean is rewritten if a target requests it: some vendors' tools refuse one, and they receive the
trained model. 1 / n adds a rounding to a division by n.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from npumake.graph import Graph, Node, Value, dtype, is_float
from npumake.passes.writing import Writing


def plain_sums(graph: Graph) -> int:
    nodes = [node for node in graph.nodes("Sum") if _is_rewritten(node)]
    for node in nodes:
        *others, last = _read(node)
        write = Writing(graph, node)
        write.become("Add", [_added(write, others), last])
    return len(nodes)


def mean(write: Writing) -> bool:
    node = write.node
    if not _is_rewritten(node):
        return False
    share = np.array(1 / len(node.inputs), dtype(node.outputs[0]))
    return write.become("Mul", [_added(write, _read(node)), write.constant(share, "share")])


def _is_rewritten(node: Node) -> bool:
    """False for a single input, which is an identity."""
    return len(node.inputs) > 1 and is_float(node.outputs[0])


def _read(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _added(write: Writing, values: list[Value]) -> Value:
    return reduce(lambda total, value: write.insert("Add", [total, value], "sum"), values)
