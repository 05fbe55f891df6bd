"""Bias correction: removes the mean shift of each layer's output through its bias.

Rounded weights and inputs shift the mean of an output, and later layers suffer most from a shift.
It is measured per channel over all samples and positions,

    b' = b - d        d = E[y_q] - E[y]

before the activation (empirical bias correction: M. Nagel et al., arXiv 1906.04721, section 4.2). A
layer must see the corrected outputs of those before it: if two in a row were corrected at once, the
second would remove the shift of the first again, and in a deep model such doubles grow. So the
graph runs in steps (engine.partial.cut), and each output is carried on without d:

    y_q' = y_q - d

The mean is over all positions, so of a detector it is that of the background. If earlier layers are
mostly noise, large values come out too small, and no bias restores them. In YOLOX at 8 bits
throughout, whose stem has starved channels (calibration.channel_imbalance), the noise is 0.7 of a
standard deviation from the twelfth layer on. Correction reduces the shift of the mean from 0.1 ...
0.5 standard deviations to 0.03, but the largest percent of values is then 1.8 too small instead of
1.0, and no detection is confident. With int16 at the stem the noise is gone, and correction helps.

Memory is that of carried tensors (engine.partial.walk).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import steps_at
from npumake.engine.partial.opened import of_tensors
from npumake.engine.partial.walk import BUDGET_BYTES, LayerRoute, LayerWalk, Series
from npumake.graph import Graph
from npumake.kernels.affine import other_axes, per_axis
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers, set_bias


class FloatLayers:
    """A float graph with E[y] per channel of its layers, by tensor and sample number. Each is
    computed once, for all corrections over the same feeds."""

    def __init__(self, graph: Graph, operators: Operators = NO_OPERATORS) -> None:
        self.graph, self.operators = graph, operators
        self._means: dict[str, dict[int, np.ndarray]] = {}

    def means(self, axes: Mapping[str, int], walk: LayerWalk) -> dict[str, dict[int, np.ndarray]]:
        """The means of these tensors; `axes` has the channel axis of each."""
        new = {name: axis for name, axis in axes.items() if name not in self._means}
        if new:
            part = of_tensors(self.graph, new, self.operators)

            def measured(feed: Feeds) -> list[np.ndarray]:
                outputs = part.run(feed)
                return [_mean(outputs[name], axis) for name, axis in new.items()]

            every = zip(*side_by_side(measured, walk.feeds(walk.chosen)), strict=True)
            for name, means in zip(new, every, strict=True):
                self._means[name] = dict(zip(walk.chosen, means, strict=True))
        return {name: self._means[name] for name in axes}


def correct_biases(
    optimized_float: Graph,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    budget: int = BUDGET_BYTES,
    shared: FloatLayers | None = None,
) -> Graph:
    """A copy of `calibrated` with corrected biases, in one pass of either graph over `feeds`.

    Both graphs have nodes of the same names. A MatMul has no bias and is skipped. `shared` is
    `optimized_float`, where several corrections over the same feeds share its means.
    """
    graph = calibrated.copy()
    twins = {str(node.name): node.outputs[0] for node in optimized_float.nodes()}
    layers = [
        layer
        for layer in quantized_layers(graph)
        if layer.node.op_type != "MatMul" and str(layer.node.name) in twins
    ]
    if not layers:  # onnxruntime refuses a model without outputs
        return graph
    cut = steps_at(graph, {layer.node for layer in layers})
    walk = LayerWalk([LayerRoute(graph, cut)], feeds, operators, budget)
    named = {layer: str(twins[str(layer.node.name)].name) for layer in layers}
    real = shared or FloatLayers(optimized_float, operators)
    meant = real.means({name: layer.axis(layer.y) for layer, name in named.items()}, walk)
    for at, step in enumerate(cut):
        corrected = [layer for layer in layers if layer.node in step.nodes]
        walk.advance(at, [layer.y for layer in corrected])
        for layer in corrected:
            _correct(graph, layer, meant[named[layer]], walk)
        walk.join(at)
    graph.drop_unused()
    return graph.with_shapes()


def _correct(
    graph: Graph, layer: LinearLayer, meant: Mapping[int, np.ndarray], walk: LayerWalk
) -> None:
    """Edits in place: the bias, and the layer's outputs of the samples on the way."""
    (tensors,), name = walk.samples, str(layer.y.name)
    shifts = [
        _mean(values[name], layer.axis(layer.y)) - meant[number]
        for number, values in zip(walk.numbers, tensors, strict=True)
    ]
    shift = np.sum(shifts, axis=0) / max(len(shifts), 1)
    set_bias(graph, layer, layer.bias() - shift)
    for values in tensors:
        y = values[name]
        y -= per_axis(shift, y.ndim, layer.axis(layer.y)).astype(y.dtype)  # a copy of our own


def _mean(y: np.ndarray, axis: int) -> np.ndarray:
    return y.mean(axis=other_axes(y.ndim, axis), dtype=np.float64)
