"""A BatchNormalization that no linear node absorbs becomes a convolution, which chips support.

y = gain * x + shift per channel is a depthwise 1x1 Conv with weight gain and bias shift. For a
matrix, which no Conv takes, it is a Mul and an Add. A result of another pass has no shape yet and
waits for the next round: Mul and Add would broadcast along the last axis.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph
from npumake.passes.affine import Affine, affine


def batch_norm_to_conv(graph: Graph) -> int:
    norms = [norm for node in graph.nodes("BatchNormalization") if (norm := affine(node))]
    shaped = [norm for norm in norms if norm.x.shape is not None]
    for norm in shaped:
        _rewrite(graph, norm)
    return len(shaped)


def _rewrite(graph: Graph, norm: Affine) -> None:
    node, x = norm.node, norm.x
    rank = len(x.shape or ())
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
