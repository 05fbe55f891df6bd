"""Bias correction: what quantization shifts on average, taken off the bias.

Rounded weights and inputs move the mean of what a layer makes, and a shift is what the layers
behind it suffer from most. It is measured, per channel over all samples and positions,

    b' = b - (E[y_q] - E[y])

before the activation (empirical bias correction: M. Nagel et al., arXiv 1906.04721, section 4.2).
A layer sees what those before it have been corrected to: the layers are corrected in waves, by how
many layers lie before them, each wave after another pass over the samples through the graph so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Node, producer, reads
from pipeline.quant.layers import Layer, quantized_layers, set_bias
from pipeline.quant.observe import Series

WAVES = 16


def bias_corrected(
    optimized_float: Graph,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    waves: int = WAVES,
) -> Graph:
    """A copy of `calibrated` with other biases, in at most `waves` passes over `feeds`.

    Both graphs have nodes of the same names. A MatMul has no bias, and is left.
    """
    graph = calibrated.copy()
    twins = {str(node.name): node.outputs[0] for node in optimized_float.nodes()}
    layers = [
        made
        for made in quantized_layers(graph)
        if made.node.op_type != "MatMul" and str(made.node.name) in twins
    ]
    names = [str(twins[str(made.node.name)].name) for made in layers]
    meant = dict(zip(layers, _means(optimized_float, names, layers, feeds, operators), strict=True))
    for wave in _waves(graph, layers, waves):
        names = [str(made.y.name) for made in wave]
        for made, mean in zip(wave, _means(graph, names, wave, feeds, operators), strict=True):
            set_bias(graph, made, made.bias() - (mean - meant[made]))
    graph.drop_unused()
    return graph.with_shapes()


def _means(
    graph: Graph,
    names: Sequence[str],
    layers: Sequence[Layer],
    feeds: Series,
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
    for parts in side_by_side(measured, feeds):
        for total, part in zip(sums, parts, strict=True):
            total += part
    return [total / max(len(feeds), 1) for total in sums]


def _mean(layer: Layer, y: np.ndarray) -> np.ndarray:
    axis = layer.axis(layer.y)
    return y.mean(axis=tuple(a for a in range(y.ndim) if a != axis), dtype=np.float64)


def _waves(graph: Graph, layers: Sequence[Layer], most: int) -> list[list[Layer]]:
    """The layers by how many lie before them, neighbours together where that is too many waves."""
    counted = {made.node for made in layers}
    depth: dict[Node, int] = {}
    for node in graph.nodes():
        makers = [maker for value in reads(node) if (maker := producer(value)) is not None]
        depth[node] = max((depth[maker] + (maker in counted) for maker in makers), default=0)
    deepest = max((depth[made.node] for made in layers), default=0) + 1
    wave = {made: depth[made.node] * min(most, deepest) // deepest for made in layers}
    ordered = sorted(layers, key=wave.__getitem__)
    return [list(some) for _, some in groupby(ordered, key=wave.__getitem__)]
