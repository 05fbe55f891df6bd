"""YUV to RGB with the gains of a vendor's tool, if they differ from those of BT.601.

    R = Y + v V        B = Y + u U        G = Y - (0.114 u / 0.587) U - (0.299 v / 0.587) V

G follows because Y stays 0.299 R + 0.587 G + 0.114 B. Every weight of U is proportional to u, every
weight of V to v. No bias changes: U and V are fed as code - 128.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.borders.images import images
from npumake.graph import Graph, Node, array
from npumake.kernels.color import FORMULAS

CHANNELS = 3


class ChromaGains(NamedTuple):
    """What one code of U adds to blue, and one of V to red."""

    u: float
    v: float


BT601 = ChromaGains(FORMULAS["b"]["u"], FORMULAS["r"]["v"])


def with_chroma_gains(graph: Graph, gains: ChromaGains) -> int:
    """Rewrites the preprocessing of each YUV picture that becomes RGB or BGR; returns how many."""
    ratios = np.divide((1.0, *gains), (1.0, *BT601))
    changes = sum(
        _scale(graph, node, ratios)
        for name in sorted(images(graph))
        for node in (*graph.find(f"preprocess_{name}")[:1], *graph.find(f"{name}_mixed")[:1])
    )
    if changes:
        graph.drop_unused()
    return changes


def _scale(graph: Graph, node: Node, ratios: np.ndarray) -> int:
    weight = array(node.inputs[1]) if node.op_type in ("Conv", "MatMul") else None
    if weight is None or weight.size != CHANNELS**2:
        return 0
    # of a Conv (output, input, 1, 1), of a MatMul (input, output)
    axis = 1 if node.op_type == "Conv" else 0
    if not np.take(weight, 0, axis).all():  # Y is a part of each color; else channels are reordered
        return 0
    sizes = [CHANNELS if index == axis else 1 for index in range(weight.ndim)]
    scaled = (weight.astype(np.float64) * ratios.reshape(sizes)).astype(weight.dtype)
    graph.set_inputs(node, {1: graph.constant(f"{node.name}_chroma", scaled)})
    return 1
