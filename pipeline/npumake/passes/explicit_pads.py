"""Writes auto_pad and output_shape as explicit pads, which all engines and compilers read alike.

With output ceil(in / stride) per axis, SAME needs

    total = max(0, (out - 1) * stride + dilation * (kernel - 1) + 1 - in)

zeros, half on each side; the odd one goes to the end for UPPER, to the beginning for LOWER (ONNX
Conv, auto_pad). A ConvTranspose of known output size crops

    total = (in - 1) * stride + dilation * (kernel - 1) + 1 + output_padding - out

elements; SAME has out = in * stride. The odd one goes to the end for UPPER, else to the beginning.
A negative total is output padding for output_shape, and 0 for SAME, as in onnxruntime. SAME with
output padding is left alone: onnx and onnxruntime disagree on its shape.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, attribute, shape

WINDOWED = ("AveragePool", "Conv", "LpPool", "MaxPool")
TRANSPOSED = "ConvTranspose"


def explicit_pads(graph: Graph) -> int:
    windows = [node for node in graph.nodes(*WINDOWED) if _auto(node) != "NOTSET"]
    for node in windows:
        graph.set_attributes(node, auto_pad=None, pads=_pads(node))
    transposed = [node for node in graph.nodes(TRANSPOSED) if _has_known_output(node)]
    for node in transposed:
        _write_out(graph, node)
    return len(windows) + len(transposed)


def _auto(node: Node) -> str:
    return str(attribute(node, "auto_pad", "NOTSET"))


def _pads(node: Node) -> list[int]:
    x = node.inputs[0]
    assert x is not None
    spatial = shape(x)[2:]
    rank = len(spatial)
    if _auto(node) == "VALID":
        return [0] * 2 * rank
    strides = attribute(node, "strides", (1,) * rank)
    dilations = attribute(node, "dilations", (1,) * rank)
    totals = [
        max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        for n, k, s, d in zip(spatial, _kernel(node), strides, dilations, strict=True)
    ]
    return _shared(totals, to_the_end=_auto(node) == "SAME_UPPER")


def _shared(totals: list[int], to_the_end: bool) -> list[int]:
    """Every begin, then every end; the odd element goes to the end or to the beginning."""
    smaller = [total // 2 for total in totals]
    larger = [total - half for total, half in zip(totals, smaller, strict=True)]
    return smaller + larger if to_the_end else larger + smaller


def _kernel(node: Node) -> tuple[int, ...]:
    if node.op_type in ("Conv", TRANSPOSED):
        weight = node.inputs[1]
        assert weight is not None
        return shape(weight)[2:]
    return tuple(attribute(node, "kernel_shape"))


def _has_known_output(node: Node) -> bool:
    if attribute(node, "output_shape") is not None or _auto(node) == "VALID":
        return True
    return _auto(node) != "NOTSET" and not any(attribute(node, "output_padding", ()))


def _write_out(graph: Graph, node: Node) -> None:
    rank, own = len(_kernel(node)), {"auto_pad": None, "output_shape": None}
    if _auto(node) == "VALID" and attribute(node, "output_shape") is None:
        graph.set_attributes(node, **own, pads=None)
        return
    extra = list(attribute(node, "output_padding", (0,) * rank))
    cut = _cut(node, extra)
    if attribute(node, "output_shape") is not None:
        extra = [extra_pad + max(-total, 0) for extra_pad, total in zip(extra, cut, strict=True)]
    pads = _shared([max(total, 0) for total in cut], to_the_end=_auto(node) == "SAME_UPPER")
    graph.set_attributes(node, **own, pads=pads, output_padding=extra if any(extra) else None)


def _cut(node: Node, extra: list[int]) -> list[int]:
    """By axis, the elements to crop from the output without pads."""
    x = node.inputs[0]
    assert x is not None
    spatial, rank = shape(x)[2:], len(extra)
    strides = attribute(node, "strides", (1,) * rank)
    dilations = attribute(node, "dilations", (1,) * rank)
    declared = attribute(node, "output_shape")
    out = [n * s for n, s in zip(spatial, strides, strict=True)] if declared is None else declared
    sizes = zip(spatial, _kernel(node), strides, dilations, extra, out[-rank:], strict=True)
    return [(n - 1) * s + d * (k - 1) + 1 + extra_pad - m for n, k, s, d, extra_pad, m in sizes]
