"""A pool over the whole image becomes the global pool.

AveragePool(x), kernel (H, W), no pads -> GlobalAveragePool(x)      MaxPool -> GlobalMaxPool

Not in PASSES: targets request it.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, attribute, open_dimensions, shape

GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}


def pool_whole_image(graph: Graph) -> int:
    nodes = [node for node in graph.nodes(*GLOBAL) if _covers(node)]
    for node in nodes:
        graph.become(node, GLOBAL[node.op_type], node.inputs)
    return len(nodes)


def _covers(node: Node) -> bool:
    x = node.inputs[0]
    if x is None or open_dimensions(x) or len(node.outputs) > 1:
        return False
    pads, dilations = (attribute(node, name, ()) for name in ("pads", "dilations"))
    whole = tuple(attribute(node, "kernel_shape")) == shape(x)[2:]
    return whole and not any(pads) and set(dilations) <= {1}
