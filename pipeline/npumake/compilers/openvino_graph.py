"""Rewrites the parts of a Q/DQ graph that OpenVINO would compute wrongly.

OpenVINO's int8 AveragePool with counted pads (2026.4) pads with code 0 instead of the zero point,
so windows at the border are wrong where that is not 0. The same sum is a depthwise Conv:

    y = sum over the window of x / n        n, the size of the window

With ceil_mode, overhanging windows have another n at the border; such a pool is refused.

A nearest Resize reads other positions than ONNX's where one is a tie, or misses one by float
rounding (20 to 6 at half pixels, align_corners with floor). It becomes a Gather along each axis,
except for whole scales without an offset. OpenVINO ignores antialias and keep_aspect_ratio_policy
of a linear Resize, peepholes and input_forget of an LSTM, so these are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from npumake.compilers.process import CompilerError
from npumake.engine import resizing
from npumake.errors import GraphError, StageError
from npumake.graph import Graph, Node, attribute, shape
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.kernels import resize

PEEPHOLES = 7  # the input P of an LSTM
NAMED = re.compile(r"<Node\((\w+)\): ([^>]+)>")  # operator type and output name
HINT = "replace the node, or build for the target `onnx`, which takes the same graph"


def for_openvino(quantized: Graph) -> Graph:
    """A rewritten copy, or the graph itself if it needs none. Raises GraphError."""
    if not any(_is_off(node) for node in quantized.nodes(*MENDED)):
        return quantized
    graph = quantized.copy()
    for node in filter(_is_off, graph.nodes(*MENDED)):
        MENDED[node.op_type](graph, node)
    return graph


def _is_off(node: Node) -> bool:
    if node.op_type == "LSTM":
        return bool(_ignored_of_lstm(node))
    return _is_counted(node) if node.op_type == "AveragePool" else _is_elsewhere(node)


def _ignored_of_lstm(node: Node) -> str:
    """What OpenVINO ignores of an LSTM; empty if nothing."""
    if len(node.inputs) > PEEPHOLES and node.inputs[PEEPHOLES] is not None:
        return "the peepholes"
    return "input_forget" if attribute(node, "input_forget", 0) else ""


def _refuse_lstm(graph: Graph, node: Node) -> None:
    """Raises GraphError."""
    message = f"OpenVINO ignores {_ignored_of_lstm(node)} of `{node.name}`"
    raise GraphError(message, hint="build for the target `onnx`, which takes the same graph")


def _is_elsewhere(node: Node) -> bool:
    """Whether OpenVINO may read a Resize at other positions than ONNX."""
    if _ignored(node):
        return True
    if attribute(node, "mode", "nearest") != "nearest" or not resizing.fits(node):
        return False
    mode, rule = resizing.coordinates(node), attribute(node, "nearest_mode", "round_prefer_floor")
    assert node.inputs[0] is not None
    sizes = zip(shape(node.inputs[0]), shape(node.outputs[0]), strict=True)
    return (mode, rule) != ("asymmetric", "floor") or any(m % n for n, m in sizes)


def _ignored(node: Node) -> list[str]:
    plain = {"antialias": 0, "keep_aspect_ratio_policy": "stretch"}
    return [name for name, usual in plain.items() if attribute(node, name, usual) != usual]


def _as_gathers(graph: Graph, node: Node) -> None:
    if ignored := _ignored(node):
        message = f"OpenVINO ignores {ignored[0]} of `{node.name}`"
        raise GraphError(message, hint=HINT)
    x, rule = node.inputs[0], attribute(node, "nearest_mode", "round_prefer_floor")
    assert x is not None
    before, after = shape(x), shape(node.outputs[0])
    scales = resizing.changed(node)
    for axis, scale in scales.items():
        where = resizing.coordinates(node)
        places = resize.nearest_indices(before[axis], after[axis], scale, where, rule)
        indices = graph.constant(f"{node.name}_places_{axis}", places.astype(np.int64))
        name = f"{node.name}_along_{axis}"
        x = graph.insert("Gather", [x, indices], name, before=node, axis=axis)
    graph.become(node, "Identity", [x])


def _is_counted(node: Node) -> bool:
    return bool(attribute(node, "count_include_pad", 0)) and any(attribute(node, "pads", ()))


def _as_conv(graph: Graph, node: Node) -> None:
    if attribute(node, "ceil_mode", 0):
        message = (
            f"OpenVINO averages `{node.name}` wrongly: its windows overhang the pads it counts"
        )
        raise GraphError(message, hint="export the pool with ceil_mode = 0")
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
    """The error with the nodes that OpenVINO reports. It names a node after its output, and also
    reports the Q behind it."""
    makers = {str(value.name): str(node.name) for node in graph.nodes() for value in node.outputs}
    refused_nodes = [
        makers[name]
        for kind, name in NAMED.findall(error.what)
        if _is_node_output(kind, name, makers)
    ]
    if not refused_nodes:
        return error
    nodes = ", ".join(f"`{name}`" for name in dict.fromkeys(refused_nodes))
    return StageError(f"OpenVINO cannot convert {nodes}: {error.what}", error.where, HINT)


def _is_node_output(kind: str, name: str, makers: dict[str, str]) -> bool:
    return kind not in QDQ_OPERATORS and name in makers


MENDED: Mapping[str, Callable[[Graph, Node], None]] = {
    "AveragePool": _as_conv,
    "LSTM": _refuse_lstm,
    "Resize": _as_gathers,
}
