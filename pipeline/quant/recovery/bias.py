"""Bias correction: what quantization shifts on average, taken off the bias.

Rounded weights and inputs move the mean of what a layer makes, and a shift is what the layers
behind it suffer from most. It is measured, per channel over all samples and positions,

    b' = b - d        d = E[y_q] - E[y]

before the activation (empirical bias correction: M. Nagel et al., arXiv 1906.04721, section 4.2).
A layer must see what those before it have been corrected to: of two in a row that are corrected at
once, the second takes off again what the first no longer adds, and in a deep model such doubles
grow until nothing is left. So the graph is run in steps: step k is all nodes with k layers before
them. What a step makes is carried to the next ones, with d taken off already:

    y_q' = y_q - d

The mean is that of all positions, so of a detector that of the background. Where the layers before
make as much noise as they tell, what is large comes out too small, and no bias gives that back. In
YOLOX at 8 bits throughout, whose stem has starved channels (calibration.uneven), the noise is
0.7 of a standard deviation from the twelfth layer on. Correction takes the shift of a mean from 0.1
... 0.5 standard deviations to 0.03, and with it what made up for the largest values: one in a
hundred is then 1.8 too small, not 1.0, and no object is sure any more. With int16 at the stem the
noise is gone, and correction helps.

Every node runs once per sample, however deep the model. Memory is what is carried, at most BUDGET
bytes; where all samples need more, evenly spaced ones of them are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Node, Value, is_given, part, producer, reads, shape
from pipeline.kernels.affine import other_axes, per_axis
from pipeline.quant.calibration.observe import Series
from pipeline.quant.precision.layers import Layer, quantized_layers, set_bias

BUDGET = 256 << 20


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
    steps = _steps(graph, layers)
    some = _some(feeds, steps, budget)
    names = [str(twins[str(made.node.name)].name) for made in layers]
    meant = dict(zip(layers, _means(optimized_float, names, layers, some, operators), strict=True))
    for made, shift in _shifts(graph, steps, meant, some, operators).items():
        set_bias(graph, made, made.bias() - shift)
    graph.drop_unused()
    return graph.with_shapes()


class _Step(NamedTuple):
    """Nodes with equally many layers before them, and what of all made so far is read later."""

    nodes: list[Node]
    layers: list[Layer]
    carried: list[Value]


def _steps(graph: Graph, layers: Sequence[Layer]) -> list[_Step]:
    """Up to the last layer."""
    counted = {made.node for made in layers}
    depth: dict[Node, int] = {}
    last: dict[Value, int] = {}  # the step that reads it last; its layer's is read in its own
    for node in graph.nodes():
        makers = [maker for value in reads(node) if (maker := producer(value)) is not None]
        depth[node] = max((depth[maker] + (maker in counted) for maker in makers), default=0)
        last |= {value: max(last.get(value, 0), depth[node]) for value in reads(node)}
    steps = [_Step([], [], []) for _ in range(1 + max((depth[m.node] for m in layers), default=-1))]
    for node, at in depth.items():
        for step in steps[at : at + 1]:
            step.nodes.append(node)
    for made in layers:
        steps[depth[made.node]].layers.append(made)
    alive = [value for value in last if not is_given(value)]
    for at, step in enumerate(steps):
        step.carried.extend(v for v in alive if _made_at(v, depth) <= at < last[v])
    return steps


def _made_at(value: Value, depth: Mapping[Node, int]) -> int:
    """The step that makes it; what is fed is there before the first."""
    maker = producer(value)
    return -1 if maker is None else depth[maker]


def _some(feeds: Series, steps: Sequence[_Step], budget: int) -> list[Feeds]:
    """As many of `feeds` as can be carried, evenly spaced; one at least."""
    sizes = (sum(4 * math.prod(shape(v)) for v in step.carried) for step in steps)
    fitting = max(budget // max(1, 1, *sizes), 1)
    return list(islice(feeds, 0, None, -(-len(feeds) // fitting) or None))


def _shifts(
    graph: Graph,
    steps: Sequence[_Step],
    meant: Mapping[Layer, np.ndarray],
    feeds: Iterable[Feeds],
    operators: Operators,
) -> dict[Layer, np.ndarray]:
    """d of every layer, shape (channels,)."""
    held: list[dict[str, np.ndarray]] = [dict(feed) for feed in feeds]
    found: dict[Layer, np.ndarray] = {}
    for step in steps:
        held = _run(graph, step, held, operators)
        for made in step.layers:
            name, axis = str(made.y.name), made.axis(made.y)
            mean = sum(_mean(made, values[name]) for values in held) / max(len(held), 1)
            found[made] = mean - meant[made]
            for values in held:
                y = values[name]
                values[name] = y - per_axis(found[made], y.ndim, axis).astype(y.dtype)
        kept = {str(value.name) for value in step.carried}
        held = [{name: values[name] for name in kept & values.keys()} for values in held]
    return found


def _run(
    graph: Graph, step: _Step, held: Sequence[dict[str, np.ndarray]], operators: Operators
) -> list[dict[str, np.ndarray]]:
    """What is held of each sample, with what the step makes."""
    inside = {value for node in step.nodes for value in node.outputs}
    made = [made.y for made in step.layers]
    made += [value for value in step.carried if value in inside and value not in made]
    session = float_session(part(graph, step.nodes, made), operators)
    names = [str(value.name) for value in made]
    fed = list(session.input_names)

    def ran(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        new = session.run(names, {name: values[name] for name in fed})
        return values | dict(zip(names, new, strict=True))

    return list(side_by_side(ran, held))


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
