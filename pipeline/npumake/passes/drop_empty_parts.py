"""A Concat without the parts that hold no elements.

A rotary embedding of the whole head slices off a rest of size 0 and joins it again. No chip has a
tensor of no elements.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, Value, attribute


def drop_empty_parts(graph: Graph) -> int:
    return sum(_drop(graph, node) for node in graph.nodes("Concat"))


def _drop(graph: Graph, node: Node) -> bool:
    parts = [value for value in node.inputs if not _is_empty(value)]
    if not parts or len(parts) == len(node.inputs):
        return False
    graph.become(node, "Concat", parts, axis=attribute(node, "axis"))
    return True


def _is_empty(value: Value | None) -> bool:
    return value is not None and value.shape is not None and 0 in tuple(value.shape)
