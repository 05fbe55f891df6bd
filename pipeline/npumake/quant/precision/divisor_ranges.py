"""Divisions whose epsilon is smaller than one code.

    x / sqrt(mean(x * x) + eps)      x / max(norm(x), eps)      x * (var + eps) ** -0.5

With 8 bits for mean + eps, an eps below half a step is code 0 if the mean is: a row of zeros gives
0 / 0, and a small one x / 0. The nodes between the squares and the quotient then stay float. From
the sum to the division each tensor has a known lower bound b:

    y = x + c    b + c        y = max(x, c)    max(b, c)        y = sqrt(x)    sqrt(b)

The division is fragile if b is less than half the step of such a tensor. The product with a
quotient is safe, except for 1 / sqrt(eps): if the dividend is constant, the products stay float
too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.engine.fusion import absorbed, result
from npumake.graph import Graph, Node, Value, array, producer
from npumake.quant.precision.placement import is_data_movement, source_tensor

SUM_OPERATORS = frozenset(
    {
        *("AveragePool", "GlobalAveragePool", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum"),
        *("ReduceSumSquare", "GlobalLpPool"),
    }
)
NORM_OPERATORS = frozenset({"GlobalLpPool", "LpNormalization", "ReduceL2", "Sqrt"})
SQUARE_OPERATORS = frozenset({"Abs", "Mul", "Pow"})
COPY_OPERATORS = frozenset({"Cast", "Expand", "Identity", "Tile"})


class _Step(NamedTuple):
    """A node between the sum and the division: its input, and the lower bound of its output from
    that of its input."""

    node: Node
    read: Value
    raised: float = 0.0
    added: float = 0.0
    factor: float = 1.0
    power: float = 1.0

    def bound(self, b: float) -> float:
        return max((b + self.added) * self.factor, self.raised) ** self.power


def fragile_divisions(graph: Graph, steps: Mapping[str, float]) -> list[Node]:
    """The nodes that must stay float, in order.

    `steps` are the 8-bit scales of the observed tensors by name.
    """
    chains: set[Node] = set()
    for node in graph.nodes("Div", "Pow", "Reciprocal"):
        divisor = _divisor(node)
        if divisor is not None:
            chains |= _chain(node, divisor, steps)
    return [node for node in graph.nodes() if node in chains]


def _divisor(node: Node) -> Value | None:
    if node.op_type == "Div":
        value = node.inputs[1]
    elif node.op_type == "Reciprocal" or (_number(node.inputs[1]) or 0.0) < 0:
        value = node.inputs[0]
    else:
        return None
    return None if value is None or array(value) is not None else value


def unguarded_norm(divisor: Value) -> Value | None:
    """The tensor whose norm the divisor is, without an epsilon; None otherwise."""
    value = divisor
    while (step := _step(value)) is not None:
        if step.added > 0 or step.raised > 0:
            return None
        value = step.read
    summed = producer(source_tensor(value))
    if summed is None or summed.op_type not in SUM_OPERATORS:
        return None
    inner = next(_squares(summed), summed)
    return inner.inputs[0]


def _chain(division: Node, divisor: Value, steps: Mapping[str, float]) -> set[Node]:
    """The nodes to keep in float; empty if the division is safe."""
    way: list[_Step] = []
    value = divisor
    while (step := _step(value)) is not None:
        way.append(step)
        value = step.read
    summed = producer(source_tensor(value))
    is_sum = summed is not None and summed.op_type in SUM_OPERATORS
    guarded = any(step.added > 0 or step.raised > 0 for step in way)
    is_norm = any(n.op_type in NORM_OPERATORS for n in (s.node for s in way)) or _is_norm(summed)
    if not (guarded or (is_norm and is_sum)) or not _is_small(way, steps):
        return set()
    nodes = {division, *_behind(division), *(step.node for step in way)}
    if is_sum and summed is not None:
        nodes |= {summed, *_squares(summed)}
    return nodes | {clamp for node in nodes if (clamp := absorbed(node)) is not None}


def _is_norm(node: Node | None) -> bool:
    return node is not None and (
        node.op_type in NORM_OPERATORS or any(True for _ in _squares(node))
    )


def _is_small(way: list[_Step], steps: Mapping[str, float]) -> bool:
    """Whether some tensor on the way may be less than half a code."""
    bound, min_ratio = 0.0, math.inf
    for step in reversed(way):
        bound = step.bound(bound)
        own = steps.get(str(source_tensor(result(step.node)).name), 0.0)
        min_ratio = min(min_ratio, 2.0 * bound / own) if own else min_ratio
    return min_ratio < 1.0 or not way


def _step(value: Value) -> _Step | None:
    node = producer(value)
    if node is None or node.domain or not node.inputs or node.inputs[0] is None:
        return None
    read = node.inputs[0]
    if is_data_movement(node) or node.op_type in COPY_OPERATORS or node.op_type == "Relu":
        return _Step(node, read)
    if node.op_type == "Sqrt":
        return _Step(node, read, power=0.5)
    constants = [_number(operand) for operand in node.inputs]
    if node.op_type == "Clip":
        low = _number(node.inputs[1]) if len(node.inputs) > 1 else None
        return _Step(node, read, raised=max(low or 0.0, 0.0))
    if len(node.inputs) != 2 or (constants[0] is None) == (constants[1] is None):
        return None
    c = next(number for number in constants if number is not None)
    read = next(v for v, n in zip(node.inputs, constants, strict=True) if n is None and v)
    return _with_constant(node, read, c, is_second=constants[1] is not None)


def _with_constant(node: Node, read: Value, c: float, is_second: bool) -> _Step | None:
    if node.op_type == "Add" and c > 0:
        return _Step(node, read, added=c)
    if node.op_type == "Max":
        return _Step(node, read, raised=max(c, 0.0))
    if node.op_type == "Mul" and c > 0:
        return _Step(node, read, factor=c)
    if node.op_type == "Div" and c > 0 and is_second:
        return _Step(node, read, factor=1.0 / c)
    if node.op_type == "Pow" and c > 0 and is_second:
        return _Step(node, read, power=c)
    return None


def _squares(summed: Node) -> Iterator[Node]:
    """The node that squares the summed values."""
    value = None if not summed.inputs else summed.inputs[0]
    node = None if value is None else producer(value)
    if node is None or node.op_type not in SQUARE_OPERATORS or node.domain:
        return iter(())
    is_square = node.op_type != "Mul" or node.inputs[0] is node.inputs[1]
    return iter([node] if is_square else [])


def _behind(division: Node) -> Iterator[Node]:
    """The products with a quotient of a constant, up to the first tensor."""
    if division.op_type == "Div" and array(division.inputs[0]) is None:
        return
    read = [division]
    while read:
        node = read.pop()
        for use in node.outputs[0].uses():
            if is_data_movement(use.node) or use.node.op_type in COPY_OPERATORS:
                read.append(use.node)
            elif use.node.op_type == "Mul" and not use.node.domain:
                yield use.node
                if any(array(value) is not None for value in use.node.inputs):
                    read.append(use.node)


def _number(value: Value | None) -> float | None:
    """The least value of a constant."""
    values = array(value)
    if values is None or values.dtype.kind != "f" or not values.size:
        return None
    return float(np.min(values))
