"""The Q/DQ graph as OpenVINO computes it right.

Of an AveragePool that counts its pads, OpenVINO's int8 kernel (2026.4) takes the padding as codes
of 0, not as the zero point: where that is not 0 every window at the border is off. The same sum is
a depthwise Conv:

    y = sum over the window of x / n        n, the size of the window

An average whose windows overhang the pads (ceil_mode) has an n of its own at the border, and is
refused.
"""

from __future__ import annotations

from math import prod

import numpy as np

from pipeline.errors import GraphError
from pipeline.graph import Graph, Node, attribute, shape


def for_openvino(quantized: Graph) -> Graph:
    """A copy, where there is something to mend. Raises GraphError."""
    if not any(_is_counted(node) for node in quantized.nodes("AveragePool")):
        return quantized
    graph = quantized.copy()
    for node in graph.nodes("AveragePool"):
        if _is_counted(node):
            _as_conv(graph, node)
    return graph


def _is_counted(node: Node) -> bool:
    return bool(attribute(node, "count_include_pad", 0)) and any(attribute(node, "pads", ()))


def _as_conv(graph: Graph, node: Node) -> None:
    if attribute(node, "ceil_mode", 0):
        what = f"OpenVINO averages `{node.name}` wrongly: its windows overhang the pads it counts"
        raise GraphError(what, hint="export the pool with ceil_mode = 0")
    x = node.inputs[0]
    assert x is not None
    kernel, channels = attribute(node, "kernel_shape"), shape(x)[1]
    rank = len(kernel)
    share = np.full((channels, 1, *kernel), 1 / prod(kernel), np.float32)
    window = {
        "pads": attribute(node, "pads"),
        "strides": attribute(node, "strides", (1,) * rank),
        "dilations": attribute(node, "dilations", (1,) * rank),
        "group": channels,
    }
    weights = graph.constant(f"{node.name}_share", share)
    graph.become(node, "Conv", [x, weights], **window)
