"""A Softmax between two reshapes becomes one along its actual axis.

Before opset 13 Softmax flattened its input; an upgraded one is

    Flatten (N, C)  ->  Softmax along C  ->  Reshape to the original shape

If C is one axis of that shape and only axes of size 1 follow it, that axis is equivalent.
"""

from __future__ import annotations

import math

from npumake.graph import (
    Graph,
    Node,
    Value,
    attribute,
    only_consumer,
    open_dimensions,
    producer,
    shape,
)
from npumake.passes.merge_moves import RESHAPES


def plain_softmax(graph: Graph) -> int:
    return sum(_rewritten(graph, node) for node in graph.nodes("Softmax", "LogSoftmax"))


def _rewritten(graph: Graph, softmax: Node) -> bool:
    flat, last = softmax.inputs[0], only_consumer(softmax.outputs[0])
    first = None if flat is None else producer(flat)
    if flat is None or first is None or last is None or first.inputs[0] is None:
        return False
    if any(near.op_type not in RESHAPES or near.domain for near in (first, last)):
        return False
    x = first.inputs[0]
    axis = _axis(x, flat, last.outputs[0], attribute(softmax, "axis", -1))
    if axis is None:
        return False
    graph.become(last, softmax.op_type, [x], axis=axis)
    graph.absorb(last, first, softmax)
    return True


def _axis(x: Value, flat: Value, y: Value, along: int) -> int | None:
    """The axis of x that corresponds to `along` of `flat`, if x reshapes to `flat` and back to
    `y`."""
    if any(open_dimensions(value) for value in (x, flat, y)) or shape(x) != shape(y):
        return None
    dims, whole = shape(x), shape(flat)
    along %= len(whole)
    behind = math.prod(whole[along + 1 :])
    candidates = [
        axis
        for axis, size in enumerate(dims)
        if size == whole[along] and math.prod(dims[axis + 1 :]) == behind
    ]
    return candidates[0] if candidates else None
