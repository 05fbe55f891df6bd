"""auto_pad written out as pads, which every engine and compiler reads alike.

With output ceil(in / stride) per axis, SAME needs

    total = max(0, (out - 1) * stride + dilation * (kernel - 1) + 1 - in)

zeros, half on each side; the odd one goes to the end for UPPER, to the beginning for LOWER
(ONNX Conv, auto_pad).
"""

from __future__ import annotations

from pipeline.graph import Graph, Node, attribute, shape

WINDOWED = ("AveragePool", "Conv", "MaxPool")


def explicit_pads(graph: Graph) -> int:
    found = [node for node in graph.nodes(*WINDOWED) if _auto(node) != "NOTSET"]
    for node in found:
        graph.set_attributes(node, auto_pad=None, pads=_pads(node))
    return len(found)


def _auto(node: Node) -> str:
    return str(attribute(node, "auto_pad", "NOTSET"))


def _pads(node: Node) -> list[int]:
    given = node.inputs[0]
    assert given is not None
    spatial = shape(given)[2:]
    rank = len(spatial)
    if _auto(node) == "VALID":
        return [0] * 2 * rank
    strides = attribute(node, "strides", (1,) * rank)
    dilations = attribute(node, "dilations", (1,) * rank)
    begin, end = [], []
    for n, k, s, d in zip(spatial, _kernel(node), strides, dilations, strict=True):
        total = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        less, more = total // 2, total - total // 2
        begin.append(less if _auto(node) == "SAME_UPPER" else more)
        end.append(more if _auto(node) == "SAME_UPPER" else less)
    return begin + end


def _kernel(node: Node) -> tuple[int, ...]:
    if node.op_type == "Conv":
        weight = node.inputs[1]
        assert weight is not None
        return shape(weight)[2:]
    return tuple(attribute(node, "kernel_shape"))
