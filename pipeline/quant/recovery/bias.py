"""Bias correction: what quantization shifts on average, taken off the bias.

Rounded weights and inputs move the mean of what a layer makes, and a shift is what the layers
behind it suffer from most. It is measured, per channel over all samples and positions,

    b' = b - d        d = E[y_q] - E[y]

before the activation (empirical bias correction: M. Nagel et al., arXiv 1906.04721, section 4.2).
A layer must see what those before it have been corrected to: of two in a row that are corrected at
once, the second takes off again what the first no longer adds, and in a deep model such doubles
grow until nothing is left. So the graph is run in steps (recovery.steps), and what a layer makes is
carried on with d taken off already:

    y_q' = y_q - d

The mean is that of all positions, so of a detector that of the background. Where the layers before
make as much noise as they tell, what is large comes out too small, and no bias gives that back. In
YOLOX at 8 bits throughout, whose stem has starved channels (calibration.uneven), the noise is
0.7 of a standard deviation from the twelfth layer on. Correction takes the shift of a mean from 0.1
... 0.5 standard deviations to 0.03, and with it what made up for the largest values: one in a
hundred is then 1.8 too small, not 1.0, and no object is sure any more. With int16 at the stem the
noise is gone, and correction helps.

Memory is what is carried, at most BUDGET bytes; where all samples need more, or are more than MOST,
evenly spaced ones of them are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph
from pipeline.kernels.affine import other_axes, per_axis
from pipeline.quant.calibration.observe import Series
from pipeline.quant.precision.layers import Layer, quantized_layers, set_bias
from pipeline.quant.recovery.steps import BUDGET, MOST, Held, Step, run, steps


def bias_corrected(
    optimized_float: Graph,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    budget: int = BUDGET,
) -> Graph:
    """A copy of `calibrated` with other biases, in two passes over `feeds`.

    Both graphs have nodes of the same names. A MatMul has no bias, and is left.
    """
    graph = calibrated.copy()
    twins = {str(node.name): node.outputs[0] for node in optimized_float.nodes()}
    layers = [
        made
        for made in quantized_layers(graph)
        if made.node.op_type != "MatMul" and str(made.node.name) in twins
    ]
    if not layers:  # onnxruntime takes no model that makes nothing
        return graph
    cut = steps(graph, {made.node for made in layers})
    some = _some(feeds, cut, budget)
    names = [str(twins[str(made.node.name)].name) for made in layers]
    meant = dict(zip(layers, _means(optimized_float, names, layers, some, operators), strict=True))
    for made, shift in _shifts(graph, cut, meant, some, operators).items():
        set_bias(graph, made, made.bias() - shift)
    graph.drop_unused()
    return graph.with_shapes()


def _some(feeds: Series, cut: Sequence[Step], budget: int) -> list[Feeds]:
    """As many of `feeds` as can be carried, evenly spaced; one at least."""
    fitting = min(max(budget // max(1, *(step.bytes for step in cut)), 1), MOST)
    return list(islice(feeds, 0, None, -(-len(feeds) // fitting) or None))


def _shifts(
    graph: Graph,
    cut: Sequence[Step],
    meant: Mapping[Layer, np.ndarray],
    feeds: Iterable[Feeds],
    operators: Operators,
) -> dict[Layer, np.ndarray]:
    """d of every layer, shape (channels,)."""
    held: list[Held] = [dict(feed) for feed in feeds]
    found: dict[Layer, np.ndarray] = {}
    for step in cut:
        layers = [made for made in meant if made.node in step.nodes]
        asked = dict.fromkeys([*(made.y for made in layers), *step.carried])
        for index, values in enumerate(run(graph, step.nodes, list(asked), held, operators)):
            held[index] = values
        for made in layers:
            name, axis = str(made.y.name), made.axis(made.y)
            mean = sum(_mean(made, values[name]) for values in held) / max(len(held), 1)
            found[made] = mean - meant[made]
            for values in held:
                y = values[name]
                values[name] = y - per_axis(found[made], y.ndim, axis).astype(y.dtype)
        names = [str(value.name) for value in step.carried]
        held = [{name: values[name] for name in names} for values in held]
    return found


def _means(
    graph: Graph,
    names: Sequence[str],
    layers: Sequence[Layer],
    feeds: Sequence[Feeds],
    operators: Operators,
) -> list[np.ndarray]:
    """E[y] per channel of each named tensor, which the layer beside it makes."""
    watched = graph.copy()
    watched.expose(names)
    watched.drop_unused()
    session = float_session(watched, operators)

    def measured(feed: Feeds) -> list[np.ndarray]:
        made = session.run(names, feed)
        return [_mean(layer, y) for layer, y in zip(layers, made, strict=True)]

    sums = [np.zeros(made.channels) for made in layers]
    for means in side_by_side(measured, feeds):
        for total, mean in zip(sums, means, strict=True):
            total += mean
    return [total / max(len(feeds), 1) for total in sums]


def _mean(layer: Layer, y: np.ndarray) -> np.ndarray:
    return y.mean(axis=other_axes(y.ndim, layer.axis(layer.y)), dtype=np.float64)
