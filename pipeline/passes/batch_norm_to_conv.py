"""A BatchNormalization behind nothing linear: a convolution that a chip has, instead of a node it
has not.

y = gain * x + shift per channel is a depthwise 1x1 Conv of weight gain and bias shift; for a
matrix, which no Conv takes, it is a Mul and an Add.
"""

from __future__ import annotations

import numpy as np

from pipeline.graph import Graph
from pipeline.passes.affine import Affine, affine


def batch_norm_to_conv(graph: Graph) -> int:
    found = [norm for node in graph.nodes("BatchNormalization") if (norm := affine(node))]
    for norm in found:
        _rewrite(graph, norm)
    return len(found)


def _rewrite(graph: Graph, norm: Affine) -> None:
    node, x = norm.node, norm.x
    rank = 2 if x.shape is None else len(x.shape)
    dtype = np.float32 if x.dtype is None else x.dtype.numpy()
    gain, shift = norm.gain.astype(dtype), norm.shift.astype(dtype)
    added = graph.constant(f"{node.name}_shift", shift)
    if rank > 2:
        weight = graph.constant(f"{node.name}_gain", gain.reshape(-1, *(1,) * (rank - 1)))
        graph.become(node, "Conv", [x, weight, added], group=gain.size)
        return
    factor = graph.constant(f"{node.name}_gain", gain)
    scaled = graph.insert("Mul", [x, factor], f"{node.name}_scaled", before=node)
    graph.become(node, "Add", [scaled, added])
