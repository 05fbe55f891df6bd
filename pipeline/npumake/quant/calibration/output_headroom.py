"""Scores: what a Sigmoid answers, or a Softmax makes, may be surer than in any sample.

Most of what a detector is shown is background. Its samples tell how far below zero x comes, of

    y = Sigmoid(x)

but hardly how far above: 32 pictures without a large face have no y above 0.56, and on a grid that
ends there a face that comes later is as unsure. A Sigmoid is alike on both sides of zero, so x may
come as far above it as it does below, up to FLAT, from where y is 1 but for a PART of a step
(calibration.saturating):

    range of x    l .. max(h, min(-l, FLAT))        range of y    l .. max(h, 1 - l)

A grid with zero in the middle has these codes for x anyway.

What a Softmax makes of n numbers is 1 / n in the mean. Its grid holds SURE times that, or 1,
however unsure all samples are:

    range of y    l .. max(h, min(1, SURE / n))

onnxruntime's integer Softmax counts on it: where its grid ends below 1.72 / n, numbers of 32 bits
overflow in it, and what should be the largest code is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from npumake.graph import Graph, attribute, shape
from npumake.quant.calibration.activation_aware_ranges import PART, STEPS
from npumake.quant.precision.placement import activations, output_tensors, source_tensor

FLAT = math.log(STEPS * PART)
SURE = 2.0

Interval = tuple[float, float]


def with_headroom(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """Those of `ranges`, by observed tensor of the float `graph`, that are to reach further up."""
    widened: dict[str, Interval] = {}
    for name, both, most in _scores(graph):
        if name in ranges:
            low, high = ranges[name]
            widened[name] = low, max(high, min(both - low, most))
    for node in graph.nodes("Softmax"):
        output = node.outputs[0]
        if (name := str(output.name)) in ranges:
            (low, high), among = ranges[name], shape(output)[attribute(node, "axis", -1)]
            widened[name] = low, max(high, min(1.0, SURE / max(among, 1)))
    return widened


def _scores(graph: Graph) -> Iterator[tuple[str, float, float]]:
    """x and y by name, what each adds up to with its mirror image, and what is enough of it."""
    answered = output_tensors(graph)
    for node in graph.nodes():
        if node.op_type == "Sigmoid" and str(node.outputs[0].name) in answered:
            for x in activations(node):
                yield str(source_tensor(x).name), 0.0, FLAT
            yield str(node.outputs[0].name), 1.0, 1.0
