"""Bias correction: removes the mean shift of each layer's output through its bias.

Rounded weights and inputs shift the mean of an output, and later layers suffer most from a shift.
It is measured per channel over all samples and positions,

    b' = b - d        E[f(y_q - d)] = E[f(y)]

where f is the activation behind the layer, if there is one: a ReLU, a clamp, a SiLU. What it cuts
off or presses together no later layer reads, though most of the values may lie there. Without it
d = E[y_q] - E[y] (empirical bias correction: M. Nagel et al., arXiv 1906.04721, section 4.2), from
which Newton's method finds it in MAX_ROUNDS steps.

The mean over a few samples is uncertain. Where its standard error s is as large as d itself, the
correction is noise, which the next layers take for a shift. So d is shrunk (the positive part of
James and Stein's estimate, for each channel):

    d' = d max(0, 1 - (s / d)^2)

A layer must see the corrected outputs of those before it: if two in a row were corrected at once,
the second would remove the shift of the first again, and in a deep model such doubles grow. So the
graph runs in steps (engine.partial.cut), and each output is carried on without d'.

The mean is over all positions, so of a detector it is that of the background. Where earlier layers
are mostly noise, large values come out too small, and no bias restores them: YOLOX at 8 bits
throughout, whose stem has starved channels (calibration.channel_imbalance). Measurements stand in
docs/precision.md.

Memory is that of carried tensors (engine.partial.walk).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import steps_at
from npumake.engine.partial.opened import of_tensors
from npumake.engine.partial.walk import BUDGET_BYTES, LayerRoute, LayerWalk, Series
from npumake.graph import Graph
from npumake.kernels.affine import other_axes, per_axis
from npumake.quant.correction.activation_behind import Activation, activation_behind
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers, set_bias

MAX_ROUNDS = 5  # of Newton's method
STEP = 0.01  # standard deviations of the output, over which the slope of f is taken
MIN_SLOPE = 0.05
MAX_SHIFT = 1.0  # standard deviations of the output, that an activation may add to d


class FloatLayers:
    """A float graph with E[y] and E[f(y)] per channel of its layers, by tensor and sample number.
    Each is computed once, for all corrections over the same feeds."""

    def __init__(self, graph: Graph, operators: Operators = NO_OPERATORS) -> None:
        self.graph, self.operators = graph, operators
        self._means: dict[str, dict[int, np.ndarray]] = {}

    def means(
        self, layers: Mapping[str, LinearLayer], walk: LayerWalk
    ) -> dict[str, dict[int, np.ndarray]]:
        """The means of these tensors, each the output of its layer: (2, channels)."""
        new = {name: layer for name, layer in layers.items() if name not in self._means}
        if new:
            part = of_tensors(self.graph, new, self.operators)

            def measured(feed: Feeds) -> list[np.ndarray]:
                outputs = part.run(feed)
                return [_both_means(layer, outputs[name]) for name, layer in new.items()]

            every = zip(*side_by_side(measured, walk.feeds(walk.chosen)), strict=True)
            for name, means in zip(new, every, strict=True):
                self._means[name] = dict(zip(walk.chosen, means, strict=True))
        return {name: self._means[name] for name in layers}


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
    meant = real.means({name: layer for layer, name in named.items()}, walk)
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
    outputs = [values[name] for values in tensors]
    shift = bias_shift(layer, outputs, np.array([meant[number] for number in walk.numbers]))
    set_bias(graph, layer, layer.bias() - shift)
    for y in outputs:
        y -= per_axis(shift, y.ndim, layer.axis(layer.y)).astype(y.dtype)  # a copy of our own


def bias_shift(layer: LinearLayer, outputs: Sequence[np.ndarray], meant: np.ndarray) -> np.ndarray:
    """d' per channel; `meant` has E[y] and E[f(y)] of each sample, (samples, 2, channels)."""
    apart = np.array([_over_positions(layer, y, np.mean) for y in outputs]) - meant[:, 0]
    shift = plain = apart.mean(axis=0)
    f = activation_behind(layer.node)
    if f is not None:
        spread = np.mean([_over_positions(layer, y, np.std) for y in outputs], axis=0)
        step = STEP * np.maximum(spread, np.finfo(np.float32).tiny)
        for _ in range(MAX_ROUNDS):
            means = np.array([_mean_of(layer, f, y, shift) for y in outputs])
            ahead = np.array([_mean_of(layer, f, y, shift - step) for y in outputs])
            slope = np.maximum((ahead - means).mean(axis=0) / step, MIN_SLOPE)
            apart = (means - meant[:, 1]) / slope
            limit = MAX_SHIFT * spread
            shift = np.clip(shift + apart.mean(axis=0), plain - limit, plain + limit)
    error = apart.std(axis=0) / np.sqrt(max(len(outputs) - 1, 1))
    ratio = np.divide(error, shift, out=np.zeros_like(shift), where=shift != 0)
    return shift * np.maximum(0.0, 1.0 - ratio**2)


def _mean_of(layer: LinearLayer, f: Activation, y: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """E[f(y - shift)] per channel."""
    moved = y - per_axis(shift, y.ndim, layer.axis(layer.y)).astype(y.dtype)
    return _over_positions(layer, f(moved), np.mean)


def _both_means(layer: LinearLayer, y: np.ndarray) -> np.ndarray:
    """E[y] and E[f(y)], (2, channels)."""
    f = activation_behind(layer.node)
    mean = _over_positions(layer, y, np.mean)
    return np.stack([mean, mean if f is None else _over_positions(layer, f(y), np.mean)])


def _over_positions(layer: LinearLayer, y: np.ndarray, figure: Callable[..., Any]) -> np.ndarray:
    """The figure of each channel, float64 (channels,)."""
    axes = other_axes(y.ndim, layer.axis(layer.y))
    return np.asarray(figure(y, axis=axes, dtype=np.float64))
