"""Normalizes a Pad to all axes and non-negative pads; a Slice does the cropping.

Pad(x, pads, value, axes)  ->  Pad(x, pads of all axes, value)
Pad(x, [-1, 2])            ->  Pad(Slice(x, 1:), [0, 2])        for constant pads
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array, attribute, open_dimensions, shape
from npumake.passes.writing import Writing


def plain_pads(graph: Graph) -> int:
    return sum(_rewritten(graph, node) for node in graph.nodes("Pad"))


def _rewritten(graph: Graph, node: Node) -> bool:
    pads, axes = array(node.inputs[1]), _axes(node)
    x = node.inputs[0]
    if pads is None or x is None or open_dimensions(x):
        return False
    cuts = (pads < 0).any() and attribute(node, "mode", "constant") == "constant"
    if axes is None and not cuts:
        return False
    rank = len(shape(x))
    whole = np.zeros((2, rank), np.int64)
    whole[:, range(rank) if axes is None else axes % rank] = pads.reshape(2, -1)
    write = Writing(graph, node)
    if cuts:
        begin, end = np.maximum(-whole, 0)
        spans = (begin, np.array(shape(x)) - end, np.arange(rank))
        bounds = [write.constant(np.asarray(span, np.int64), "span") for span in spans]
        x = write.insert("Slice", [x, *bounds], "cut")
    added = write.constant(np.maximum(whole, 0).reshape(-1) if cuts else whole.reshape(-1), "pads")
    value = node.inputs[2] if len(node.inputs) > 2 else None
    mode = attribute(node, "mode", "constant")
    graph.become(node, "Pad", [x, added, *([] if value is None else [value])], mode=mode)
    return True


def _axes(node: Node) -> np.ndarray | None:
    """The named axes; None if it pads all, or if they are computed."""
    return array(node.inputs[3]) if len(node.inputs) > 3 else None
