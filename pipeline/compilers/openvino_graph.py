"""The Q/DQ graph as OpenVINO computes it right.

Of an AveragePool that counts its pads, OpenVINO's int8 kernel (2026.4) takes the padding as codes
of 0, not as the zero point: where that is not 0 every window at the border is off. The same sum is
a depthwise Conv:

    y = sum over the window of x / n        n, the size of the window

An average whose windows overhang the pads (ceil_mode) has an n of its own at the border, and is
refused.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

from pipeline.compilers.process import CompilerError
from pipeline.engine.grids import DQ, Q
from pipeline.errors import GraphError, StageError
from pipeline.graph import Graph, Node, attribute, shape

NAMED = re.compile(r"<Node\((\w+)\): ([^>]+)>")  # its operator, and what it makes
HINT = "replace the node, or build for the target `onnx`, which takes the same graph"


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


def named(error: CompilerError, graph: Graph) -> StageError:
    """The failure with the nodes that OpenVINO blames, where it names any: it calls a node after
    what it makes, and complains of the Q behind it too."""
    made = {str(value.name): str(node.name) for node in graph.nodes() for value in node.outputs}
    blamed = [made[name] for kind, name in NAMED.findall(error.what) if _is_known(kind, name, made)]
    if not blamed:
        return error
    nodes = ", ".join(f"`{name}`" for name in dict.fromkeys(blamed))
    return StageError(f"OpenVINO cannot convert {nodes}: {error.what}", error.where, HINT)


def _is_known(kind: str, name: str, made: dict[str, str]) -> bool:
    return kind not in (Q, DQ) and name in made
