"""Merges two consecutive nodes that only move values.

Reshape behind Reshape (or Flatten, Squeeze, Unsqueeze): only the last shape matters. Transpose
behind Transpose: axis i of the result is input axis first[last[i]].
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, attribute, producer

RESHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


def merge_reshapes(graph: Graph) -> int:
    merged = 0
    for node in graph.nodes(*RESHAPES):
        first = _maker(node, RESHAPES)
        dims = node.outputs[0].shape
        if first is None or dims is None or not all(isinstance(dim, int) and dim for dim in dims):
            continue  # a 0 would copy a size of the new input
        shape = graph.constant(f"{node.name}_shape", np.array(list(dims), np.int64))
        graph.become(node, "Reshape", [first.inputs[0], shape])
        graph.absorb(node, first)
        merged += 1
    return merged


def merge_transposes(graph: Graph) -> int:
    merged = 0
    for node in graph.nodes("Transpose"):
        first = _maker(node, ("Transpose",))
        if first is None or first.inputs[0] is None:
            continue
        inner, outer = _order(first), _order(node)
        if inner is None or outer is None:
            continue
        graph.set_attributes(node, perm=[inner[axis] for axis in outer])
        graph.set_inputs(node, {0: first.inputs[0]})
        graph.absorb(node, first)
        merged += 1
    return merged


def _maker(node: Node, op_types: tuple[str, ...]) -> Node | None:
    x: Value | None = node.inputs[0]
    maker = None if x is None else producer(x)
    matches = maker is not None and maker.op_type in op_types and not maker.domain
    return maker if matches else None


def _order(transpose: Node) -> tuple[int, ...] | None:
    """The permutation; the default is the reverse, None if the rank is unknown."""
    out_shape = transpose.outputs[0].shape
    reverse = None if out_shape is None else tuple(reversed(range(len(out_shape))))
    return attribute(transpose, "perm", reverse)
