"""Cumulative error from node to node, with only a chosen set of tensors quantized."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

from npumake.custom.operators import Operators
from npumake.data.samples import Feed
from npumake.debug.calibration_nodes import CalibrationNode, quantize, without
from npumake.debug.metrics import metric
from npumake.debug.sensitivity import ModelUnderTest
from npumake.debug.twins import compared_nodes
from npumake.engine.float_session import FloatSession, float_session
from npumake.engine.fusion import result
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.graph import Graph
from npumake.kernels.measure import Agreement, agreements


def curves(
    calibrated_model: ModelUnderTest, places: Mapping[str, Sequence[CalibrationNode]], by: str
) -> dict[str, dict[str, float]]:
    """For each set of `places`, the figure of every node in graph order: float against partly
    quantized, as the node's readers get it. Raises ProjectError for an unknown metric."""
    chosen, real = metric(by), without(calibrated_model.calibrated)
    nodes = [(str(node.name), str(result(node).name)) for node in compared_nodes(real)]
    tensors = [tensor for _, tensor in nodes]
    float_model = _watching(real, tensors, (), calibrated_model.operators)
    models = [
        _watching(real, tensors, watched_tensors, calibrated_model.operators)
        for watched_tensors in places.values()
    ]

    def compared(feed: Feed) -> list[list[Agreement]]:
        meant = float_model.run(None, feed)
        outputs = zip(*(model.run(None, feed) for model in models), strict=True)
        with NUMPY:
            return [agreements(a, values) for a, values in zip(meant, outputs, strict=True)]

    sums = [[Agreement()] * len(models) for _ in nodes]
    for node_sums in side_by_side(compared, calibrated_model.samples):
        sums = [
            [total + agreement for total, agreement in zip(totals, row, strict=True)]
            for totals, row in zip(sums, node_sums, strict=True)
        ]
    return {
        name: {
            node: chosen.figure([totals[number]])
            for (node, _), totals in zip(nodes, sums, strict=True)
        }
        for number, name in enumerate(places)
    }


def averaged(curve: Mapping[str, float]) -> dict[str, float]:
    """The running mean over the finite figures: nodes without an error have no SQNR. NaN before
    the first finite one."""
    finite = [math.isfinite(figure) for figure in curve.values()]
    sums = accumulate(
        v if is_finite else 0.0 for v, is_finite in zip(curve.values(), finite, strict=True)
    )
    means = (t / n if n else math.nan for t, n in zip(sums, accumulate(finite), strict=True))
    return dict(zip(curve, means, strict=True))


def _watching(
    real: Graph, tensors: Sequence[str], places: Sequence[CalibrationNode], operators: Operators
) -> FloatSession:
    graph = real.copy()
    outputs = quantize(graph, places)
    quantized = {
        place.tensor: outputs[place.name] for place in reversed(places) if place.name in outputs
    }
    graph.expose([quantized.get(tensor, tensor) for tensor in tensors])
    return float_session(graph, operators, fusion="floats")
