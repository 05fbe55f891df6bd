"""A Sum or Mean of any number of tensors as sums of two, which chips have.

Sum(a, b, c) -> (a + b) + c        Mean(a, b, c) -> ((a + b) + c) * (1 / 3)

1 / n is rounded once more than a division by n: the last bit of a float may differ.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from pipeline.graph import Graph, Node, Value, dtype, is_float
from pipeline.passes.writing import Writing


def plain_sums(graph: Graph) -> int:
    found = [node for node in graph.nodes("Mean", "Sum") if _is_rewritten(node)]
    for node in found:
        _rewrite(graph, node)
    return len(found)


def _is_rewritten(node: Node) -> bool:
    """One that reads a single tensor is an identity."""
    return len(node.inputs) > 1 and is_float(node.outputs[0])


def _rewrite(graph: Graph, node: Node) -> None:
    write = Writing(graph, node)
    first, *others = [value for value in node.inputs if value is not None]
    if node.op_type == "Sum":
        *others, last = others
        graph.become(node, "Add", [_added(write, first, others), last])
        return
    share = np.array(1 / len(node.inputs), dtype(node.outputs[0]))
    graph.become(node, "Mul", [_added(write, first, others), write.constant(share, "share")])


def _added(write: Writing, first: Value, others: list[Value]) -> Value:
    return reduce(lambda total, value: write.made("Add", [total, value], "sum"), others, first)
