"""Scores: what a Sigmoid answers may be surer than in any sample.

Most of what a detector is shown is background. Its samples tell how far below zero x comes, of

    y = Sigmoid(x)

but hardly how far above: 32 pictures without a large face have no y above 0.56, and on a grid that
ends there a face that comes later is as unsure. A Sigmoid is alike on both sides of zero, so x may
come as far above it as it does below, where that matters (calibration.saturating):

    range of x    l .. max(h, -l)        range of y    l .. max(h, 1 - l)

A grid with zero in the middle has these codes for x anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline.graph import Graph
from pipeline.quant.precision.placement import activations, answers, root

Interval = tuple[float, float]


def surer(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those of `ranges`, by observed tensor of the float `graph`, that are to reach further up."""
    return {
        name: (ranges[name][0], max(ranges[name][1], both - ranges[name][0]))
        for name, both in _scores(graph)
        if name in ranges
    }


def _scores(graph: Graph) -> Iterator[tuple[str, float]]:
    """x and y by name, and what each adds up to with its mirror image."""
    answered = answers(graph)
    for node in graph.nodes():
        if node.op_type == "Sigmoid" and str(node.outputs[0].name) in answered:
            for x in activations(node):
                yield str(root(x).name), 0.0
            yield str(node.outputs[0].name), 1.0
