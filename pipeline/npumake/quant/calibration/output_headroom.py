"""Output headroom: wider ranges for Sigmoid and Softmax, so that confident outputs are not clipped.

Most of a detector's calibration data is background. Its samples show how far below zero x comes, of

    y = Sigmoid(x)

but hardly how far above: 32 pictures without a large face have no y above 0.56. A grid that ends
there clips every confident face. The range of x is therefore mirrored around zero, up to
FLAT_SIGMOID_INPUT, from where y is 1 within a part of a step (calibration.activation_aware_ranges):

    range of x    l .. max(h, min(-l, FLAT_SIGMOID_INPUT))      range of y    l .. max(h, 1 - l)

A symmetric grid has these codes for x anyway.

The outputs of a Softmax over n values have the mean 1 / n. Its grid holds SOFTMAX_HEADROOM times
that, or 1, independent of the samples:

    range of y    l .. max(h, min(1, SOFTMAX_HEADROOM / n))

onnxruntime's integer Softmax relies on it: if its grid ends below 1.72 / n, 32-bit values overflow
in it, and the largest code becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from npumake.graph import Graph, attribute, shape
from npumake.quant.calibration.activation_aware_ranges import STEP_PARTS, STEPS_8BIT
from npumake.quant.precision.placement import activations, output_tensors, source_tensor

FLAT_SIGMOID_INPUT = math.log(STEPS_8BIT * STEP_PARTS)
SOFTMAX_HEADROOM = 2.0

Interval = tuple[float, float]


def with_headroom(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """The ranges that widen, by observed tensor of the float `graph`."""
    widened: dict[str, Interval] = {}
    for name, score_range, max_score in _scores(graph):
        if name in ranges:
            low, high = ranges[name]
            widened[name] = low, max(high, min(score_range - low, max_score))
    for node in graph.nodes("Softmax"):
        output = node.outputs[0]
        if (name := str(output.name)) in ranges:
            (low, high), among = ranges[name], shape(output)[attribute(node, "axis", -1)]
            widened[name] = low, max(high, min(1.0, SOFTMAX_HEADROOM / max(among, 1)))
    return widened


def _scores(graph: Graph) -> Iterator[tuple[str, float, float]]:
    """By name, x and y of each output Sigmoid, the sum of a bound and its mirror image, and the
    upper limit."""
    answered = output_tensors(graph)
    for node in graph.nodes():
        if node.op_type == "Sigmoid" and str(node.outputs[0].name) in answered:
            for x in activations(node):
                yield str(source_tensor(x).name), 0.0, FLAT_SIGMOID_INPUT
            yield str(node.outputs[0].name), 1.0, 1.0
