"""A reduction with keepdims=0 as one with keepdims=1 and a Reshape, for a target with only that.

Reduce(x, axes, keepdims=0) -> Reshape(Reduce(x, axes, keepdims=1), the original shape)

Not in PASSES: targets request it.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, attribute, open_dimensions, shape

REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")


def keep_reduced_axes(graph: Graph) -> int:
    reductions = [node for node in graph.nodes(*REDUCTIONS) if _drops(node)]
    for node in reductions:
        _rewrite(graph, node)
    return len(reductions)


def _drops(node: Node) -> bool:
    output = node.outputs[0]
    return not attribute(node, "keepdims", 1) and not open_dimensions(output)


def _rewrite(graph: Graph, node: Node) -> None:
    old, name = node.outputs[0], str(node.name)
    readers = [use.node for use in old.uses()]
    dims = graph.constant(f"{name}_dims", np.array(shape(old), np.int64))
    graph.set_attributes(node, keepdims=1)
    reshaped = graph.insert("Reshape", [old, dims], f"{name}_dropped", after=node)
    graph.replace_readers(old, reshaped, readers)
    if old.is_graph_output():
        graph.replace_output(old, reshaped)
    graph.forget_shape(old)
