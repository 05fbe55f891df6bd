"""Normalizes clamps to Clip, which the node before can fuse.

max(x, c) -> Clip(x, c, )      min(x, c) -> Clip(x, , c)      for a scalar c
Clip(x, [[c]], [d]) -> Clip(x, c, d)      as ONNX declares bounds
Clip(Clip(x, a, b), c, d) -> Clip(x, max(a, c), min(b, d))    unless a single value remains
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, array, dtype, only_consumer


def plain_clamps(graph: Graph) -> int:
    count = sum(_one_sided(graph, node) for node in graph.nodes("Max", "Min"))
    count += sum(_scalar_bounds(graph, node) for node in graph.nodes("Clip"))
    return count + sum(_merged(graph, node) for node in graph.nodes("Clip"))


def _one_sided(graph: Graph, node: Node) -> bool:
    operands = [value for value in node.inputs if value is not None and array(value) is None]
    bounds = [c for value in node.inputs if (c := array(value)) is not None]
    if len(operands) != 1 or len(bounds) != 1:
        return False
    (x,), (c,) = operands, bounds
    fits = c.size == 1 and x.shape is not None and c.ndim <= len(x.shape)
    if not fits or c.dtype.kind != "f" or np.isnan(c).any():
        return False
    limit = graph.constant(f"{node.name}_limit", c.reshape(()))
    graph.become(node, "Clip", [x, limit] if node.op_type == "Max" else [x, None, limit])
    return True


def _scalar_bounds(graph: Graph, node: Node) -> bool:
    """onnxruntime reads a bound of shape [1], and of any rank where a Conv fuses the Clip."""
    scalars: dict[int, Value] = {}
    for index, value in enumerate(node.inputs):
        c = array(value) if index else None
        if value is not None and c is not None and c.ndim and c.size == 1:
            scalars[index] = graph.constant(f"{value.name}_scalar", c.reshape(()))
    if scalars:
        graph.set_inputs(node, scalars)
    return bool(scalars)


def _merged(graph: Graph, outer: Node) -> bool:
    x = outer.inputs[0]
    inner = None if x is None or only_consumer(x) is None else x.producer()
    if x is None or inner is None or inner.domain or inner.op_type != "Clip":
        return False
    first, second = _limits(inner), _limits(outer)
    if first is None or second is None:
        return False
    low, high = max(first[0], second[0]), min(first[1], second[1])
    if not low < high:
        return False
    inputs: list[Value | None] = [inner.inputs[0]]
    for name, limit in ((f"{outer.name}_low", low), (f"{outer.name}_high", high)):
        bound = np.array(limit, dtype(x))
        inputs.append(graph.constant(name, bound) if np.isfinite(limit) else None)
    graph.become(outer, "Clip", inputs)
    graph.absorb(outer, inner)
    return True


def _limits(node: Node) -> tuple[float, float] | None:
    """The bounds of a Clip, infinite if omitted; None if computed."""
    limits = []
    for value, is_open in zip([*node.inputs[1:], None, None], (-np.inf, np.inf), strict=False):
        c = array(value)
        if value is not None and c is None:
            return None
        limits.append(is_open if c is None else float(c.reshape(-1)[0]))
    low, high = limits
    return low, high
