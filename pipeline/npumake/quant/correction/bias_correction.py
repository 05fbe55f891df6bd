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

The mean is over MIN_POSITIONS or somewhat more of each sample, evenly spread and the same in both
models: d is no better known from more, because samples differ more than positions do.

Most positions of a detector are background, and so is the mean. Where earlier layers are mostly
noise, large values come out too small, and no bias restores them: YOLOX at 8 bits throughout, whose
stem has starved channels (calibration.channel_imbalance). Measurements stand in docs/precision.md.

Adaptive rounding restores the mean of each layer's output on its way: correcting it again changed
nothing beyond the error, and took half of the time (correction.adaptive_rounding).

Memory is that of carried tensors (engine.partial.walk).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import steps_at
from npumake.engine.partial.opened import of_tensors
from npumake.engine.partial.walk import BUDGET_BYTES, LayerRoute, LayerWalk, Series
from npumake.graph import Graph, complete
from npumake.kernels.affine import per_axis
from npumake.quant.calibration.subsampling import counted_elements
from npumake.quant.correction.activation_behind import Activation, activation_behind
from npumake.quant.correction.adaptive_rounding import has_restored_mean
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers, set_bias

MAX_ROUNDS = 5  # of Newton's method
CONVERGED = 0.1  # standard errors: Newton's next step would move d far less
STEP = 0.01  # standard deviations of the output, over which the slope of f is taken
MIN_SLOPE = 0.05
MAX_SHIFT = 1.0  # standard deviations of the output, that an activation may add to d
MIN_POSITIONS = 128  # of a channel and sample, if it has as many
BLOCK_VALUES = 1 << 17  # of some channels at a time, in the cache of a processor


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
    optimized_float: Graph | FloatLayers,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    budget: int = BUDGET_BYTES,
    rounded: bool = False,
) -> Graph:
    """A copy of `calibrated` with corrected biases, in one pass of either graph over `feeds`.

    Both graphs have nodes of the same names. A MatMul has no bias and is skipped, and with
    `rounded` weights each layer whose mean they restored. Several corrections over the same feeds
    share the means of one FloatLayers.
    """
    real = optimized_float
    if not isinstance(real, FloatLayers):
        real = FloatLayers(real, operators)
    graph = calibrated.copy()
    twins = {str(node.name): node.outputs[0] for node in real.graph.nodes()}
    layers = [
        layer
        for layer in quantized_layers(graph)
        if layer.node.op_type != "MatMul" and str(layer.node.name) in twins
        if not (rounded and has_restored_mean(layer, len(feeds)))
    ]
    if not layers:  # onnxruntime refuses a model without outputs
        return graph
    cut = steps_at(graph, {layer.node for layer in layers})
    walk = LayerWalk([LayerRoute(graph, cut)], feeds, real.operators, budget)
    named = {layer: str(twins[str(layer.node.name)].name) for layer in layers}
    meant = real.means({name: layer for layer, name in named.items()}, walk)
    for at, step in enumerate(cut):
        corrected = [layer for layer in layers if layer.node in step.nodes]
        walk.advance(at, [layer.y for layer in corrected])
        for layer in corrected:
            _correct(graph, layer, meant[named[layer]], walk)
        walk.join(at)
    graph.drop_unused()
    return complete(graph)


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
    rows, f = [_rows(layer, y) for y in outputs], activation_behind(layer.node)
    channels, positions = rows[0].shape
    at_once = max(1, BLOCK_VALUES // (len(rows) * max(positions, 1)))

    def shift_of(start: int) -> np.ndarray:
        block = slice(start, start + at_once)
        y = np.stack([row[block] for row in rows], dtype=np.float32)
        return _shift(y, meant[:, :, block], f)

    return np.concatenate([*side_by_side(shift_of, range(0, channels, at_once))])


def _shift(y: np.ndarray, meant: np.ndarray, f: Activation | None) -> np.ndarray:
    """d' of some channels; y has the shape (samples, channels, positions)."""
    apart = _means(y) - meant[:, 0]
    shift = apart.mean(axis=0)
    if f is not None:
        shift, apart = _behind_activation(y, meant[:, 1], f, shift)
    ratio = np.divide(_error(apart), shift, out=np.zeros_like(shift), where=shift != 0)
    return shift * np.maximum(0.0, 1.0 - ratio**2)


def _behind_activation(
    y: np.ndarray, meant: np.ndarray, f: Activation, plain: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """d by Newton's method from `plain`, and its last move by each sample."""
    spread = y.std(axis=(0, 2)).astype(np.float64)
    step = STEP * np.maximum(spread, np.finfo(np.float32).tiny)
    limits, shift = (plain - MAX_SHIFT * spread, plain + MAX_SHIFT * spread), plain
    for _ in range(MAX_ROUNDS):
        moved = (y - d.astype(y.dtype)[:, None] for d in (shift, shift - step))
        means, ahead = (_means(f(values)) for values in moved)
        slope = np.maximum((ahead - means).mean(axis=0) / step, MIN_SLOPE)
        apart = (means - meant) / slope
        before, shift = shift, np.clip(shift + apart.mean(axis=0), *limits)
        if (np.abs(shift - before) <= CONVERGED * _error(apart)).all():
            break
    return shift, apart


def _means(y: np.ndarray) -> np.ndarray:
    """The mean over positions, (samples, channels)."""
    return y.mean(axis=2).astype(np.float64)


def _error(apart: np.ndarray) -> np.ndarray:
    """The standard error of the mean over samples."""
    return apart.std(axis=0) / np.sqrt(max(len(apart) - 1, 1))


def _both_means(layer: LinearLayer, y: np.ndarray) -> np.ndarray:
    """E[y] and E[f(y)], (2, channels)."""
    rows, f = _rows(layer, y), activation_behind(layer.node)
    mean = partial(np.mean, axis=1, dtype=np.float64)
    return np.stack([mean(rows), mean(rows if f is None else f(rows))])


def _rows(layer: LinearLayer, y: np.ndarray) -> np.ndarray:
    """The values of each channel at some positions, (channels, positions)."""
    axis = layer.axis(layer.y)
    rows = np.moveaxis(y, axis, 0).reshape(y.shape[axis], -1)
    # Not `rows[:, ...]`: that lies column by column, and means over rows would take a stride.
    return rows.take(counted_elements((rows.shape[1],), MIN_POSITIONS), axis=1)
