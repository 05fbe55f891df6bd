"""Negation and subtraction for chips that have neither.

-x -> x * -1        x - c -> x + (-c)        a - b -> a + b * -1

Exact: a float has a sign bit. Not in PASSES: targets request it.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, array, is_float


def negate_by_mul(graph: Graph) -> int:
    nodes = [node for node in graph.nodes("Neg", "Sub") if is_float(node.outputs[0])]
    for node in nodes:
        _rewrite(graph, node)
    return len(nodes)


def _rewrite(graph: Graph, node: Node) -> None:
    name = str(node.name)
    if node.op_type == "Neg":
        graph.become(node, "Mul", [node.inputs[0], _minus_one(graph, name)])
        return
    left, right = node.inputs
    constant = array(right)
    if constant is not None:
        negative = graph.constant(f"{name}_negative", -constant)
    else:
        factors = [right, _minus_one(graph, name)]
        negative = graph.insert("Mul", factors, f"{name}_negative", before=node)
    graph.become(node, "Add", [left, negative])


def _minus_one(graph: Graph, name: str) -> Value:
    return graph.constant(f"{name}_minus_one", np.array(-1.0, np.float32))
