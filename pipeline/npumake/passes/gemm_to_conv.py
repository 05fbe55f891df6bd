"""A Gemm as a 1x1 Conv over a one-pixel image, for a target without Gemm.

(N, C) -> Reshape (N, C, 1, 1) -> Conv with weight (O, C, 1, 1) -> Reshape (N, O)

Not in PASSES: targets request it. The Conv keeps the name of the Gemm.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array, attribute, open_dimensions, shape


def gemm_to_conv(graph: Graph) -> int:
    gemms = [(node, w) for node in graph.nodes("Gemm") if (w := _weight(node)) is not None]
    for gemm, weight in gemms:
        _rewrite(graph, gemm, weight)
    return len(gemms)


def _weight(gemm: Node) -> np.ndarray | None:
    """(outputs, inputs) if the Gemm is W x + b with one bias per output, else None."""
    weight = array(gemm.inputs[1])
    bias = gemm.inputs[2] if len(gemm.inputs) > 2 else None
    x, y = gemm.inputs[0], gemm.outputs[0]
    if weight is None or x is None or open_dimensions(x) or open_dimensions(y):
        return None
    if bias is not None and (array(bias) is None or shape(bias) != shape(y)[1:]):
        return None
    plain = (attribute(gemm, "alpha", 1.0), attribute(gemm, "beta", 1.0)) == (1.0, 1.0)
    if not plain or attribute(gemm, "transA", 0):
        return None
    return weight if attribute(gemm, "transB", 0) else weight.T


def _rewrite(graph: Graph, gemm: Node, weight: np.ndarray) -> None:
    x, _, *bias = gemm.inputs
    old, name = gemm.outputs[0], str(gemm.name)
    assert x is not None
    readers, dims = [use.node for use in old.uses()], shape(old)
    pixel = graph.constant(f"{name}_pixel", np.array([*shape(x), 1, 1], np.int64))
    image = graph.insert("Reshape", [x, pixel], f"{name}_image", before=gemm)
    kernel = graph.constant(f"{name}_kernel", weight[:, :, None, None])
    graph.become(gemm, "Conv", [image, kernel, *bias])
    flat = graph.constant(f"{name}_flat", np.array(dims, np.int64))
    matrix = graph.insert("Reshape", [old, flat], f"{name}_matrix", after=gemm)
    graph.replace_readers(old, matrix, readers)
    if old.is_graph_output():
        graph.replace_output(old, matrix)
    graph.forget_shape(old)
