"""Normalizes arithmetic to operators that chips support.

    c + x -> x + c      c * x -> x * c          x / c -> x * (1 / c)
    x ** 2 -> x * x     x ** 0.5 -> Sqrt(x)     x ** -1 -> Reciprocal(x)
    n * 0 -> 0, for integers, which are never NaN

Constants come second, where other passes expect them. 1 / c adds a rounding to x / c: the last bit
of a float may differ.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, array, dtype, open_dimensions, shape, write_for

POWERS = {2.0: "Mul", 0.5: "Sqrt", -1.0: "Reciprocal"}


def plain_arithmetic(graph: Graph) -> int:
    return sum(_rewritten(graph, node) for node in graph.nodes("Add", "Div", "Mul", "Pow"))


def _rewritten(graph: Graph, node: Node) -> bool:
    left, right = node.inputs
    if node.op_type == "Mul" and _is_nothing(node):
        return _replaced(graph, node)
    if node.op_type in ("Add", "Mul"):
        swap = array(left) is not None and array(right) is None
        return swap and _become(graph, node, node.op_type, [right, left])
    c = array(right)
    if left is None or c is None or array(left) is not None or c.dtype.kind != "f":
        return False
    if node.op_type == "Pow":
        return _power(graph, node, left, c)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = (1.0 / c.astype(np.float64)).astype(c.dtype)
    if not (np.isfinite(inverse).all() and (np.abs(inverse) >= np.finfo(c.dtype).tiny).all()):
        return False
    reciprocal = graph.constant(f"{node.name}_inverse", inverse)
    write_for(node, node.op_type)
    return _become(graph, node, "Mul", [left, reciprocal])


def _is_nothing(node: Node) -> bool:
    output, factors = node.outputs[0], [array(value) for value in node.inputs]
    zero = any(c is not None and c.dtype.kind == "i" and not c.any() for c in factors)
    return zero and not output.is_graph_output() and not open_dimensions(output)


def _replaced(graph: Graph, node: Node) -> bool:
    output = node.outputs[0]
    zeros = graph.constant(f"{node.name}_zeros", np.zeros(shape(output), dtype(output)))
    graph.replace_uses(output, zeros)
    graph.remove(node)
    return True


def _power(graph: Graph, node: Node, x: Value, exponent: np.ndarray) -> bool:
    if exponent.size != 1 or x.shape is None or exponent.ndim > len(x.shape):
        return False
    op_type = POWERS.get(float(exponent.reshape(-1)[0]))
    if op_type is None or x.dtype is None or not x.dtype.is_floating_point():
        return False
    return _become(graph, node, op_type, [x, x] if op_type == "Mul" else [x])


def _become(graph: Graph, node: Node, op_type: str, inputs: list[Value | None]) -> bool:
    graph.become(node, op_type, inputs)
    return True
