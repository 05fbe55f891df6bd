"""Relu as a Clip from 0, the form that the unit computes."""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph


def relu_as_clip(graph: Graph) -> int:
    relus = graph.nodes("Relu")
    for node in relus:
        low = graph.constant(graph.free_name(f"{node.name}_low"), np.zeros((), np.float32))
        graph.become(node, "Clip", [node.inputs[0], low])
    return len(relus)


def relu_as_leaky(graph: Graph) -> int:
    """One that no target can use: what a Conv makes in front of a LeakyRelu is not measured."""
    relus = graph.nodes("Relu")
    for node in relus:
        graph.become(node, "LeakyRelu", [node.inputs[0]], alpha=0.0)
    return len(relus)


PASSES = (relu_as_clip,)
