"""Scores: what a Sigmoid answers may be surer than in any sample.

Most of what a detector is shown is background. Its samples tell how far below zero x comes, of

    y = Sigmoid(x)

but hardly how far above: 32 pictures without a large face have no y above 0.56, and on a grid that
ends there a face that comes later is as unsure. A Sigmoid is alike on both sides of zero, so x may
come as far above it as it does below, up to FLAT, from where y is 1 but for a PART of a step
(calibration.saturating):

    range of x    l .. max(h, min(-l, FLAT))        range of y    l .. max(h, 1 - l)

A grid with zero in the middle has these codes for x anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pipeline.graph import Graph
from pipeline.quant.calibration.saturating import PART, STEPS
from pipeline.quant.precision.placement import activations, answers, root

FLAT = math.log(STEPS * PART)

Interval = tuple[float, float]


def surer(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those of `ranges`, by observed tensor of the float `graph`, that are to reach further up."""
    found: dict[str, Interval] = {}
    for name, both, most in _scores(graph):
        if name in ranges:
            low, high = ranges[name]
            found[name] = low, max(high, min(both - low, most))
    return found


def _scores(graph: Graph) -> Iterator[tuple[str, float, float]]:
    """x and y by name, what each adds up to with its mirror image, and what is enough of it."""
    answered = answers(graph)
    for node in graph.nodes():
        if node.op_type == "Sigmoid" and str(node.outputs[0].name) in answered:
            for x in activations(node):
                yield str(root(x).name), 0.0, FLAT
            yield str(node.outputs[0].name), 1.0, 1.0
