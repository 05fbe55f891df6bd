"""The error that each node adds itself, largest first.

    loss of a node = 1 - cosine( f(x), q(x) )

x is the node's input as the quantized nodes before it compute it, dequantized; f is the node in
float, q the node in integers. Errors inherited from earlier nodes do not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Feed, Samples
from npumake.debug.compared_models import real_numbers
from npumake.debug.twins import View, nodes_with_twins, views_of
from npumake.engine.exact import ExactSession
from npumake.engine.fusion import absorbed, result
from npumake.engine.lower import lowered
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.opened import of_nodes
from npumake.engine.partial.part import Part
from npumake.graph import Graph, Node, origin
from npumake.kernels.measure import Alignment, alignments
from npumake.quant.search.holdout import holdout_samples
from npumake.targets.target import Target

DIGITS = 9


class Loss(NamedTuple):
    """`lost` is 1 - cosine; `origin` names the node's nodes in the trained model."""

    node: str
    lost: float
    origin: tuple[str, ...]


class _SingleNode(NamedTuple):
    """A float node as a model of its own, with the clamp that is fused into it."""

    tensor: str  # the tensor
    part: Part


def local_losses(
    optimized_float: Graph,
    calibrated: Graph,
    quantized: Graph,
    samples: Samples,
    target: Target,
    operators: Operators = NO_OPERATORS,
) -> tuple[Loss, ...]:
    """The loss of every node over the held-out samples: largest first, ties in graph order.

    `optimized_float` is the float graph whose tensors have the scales. Nodes are left out whose
    inputs the program does not compute.
    """
    program = lowered(quantized, target.rounding, target.runnable)
    nodes = nodes_with_twins(optimized_float, calibrated)
    views = views_of(optimized_float, calibrated, nodes, program)
    exact = ExactSession(program, operators, 1, [view.program for view in views.values()])
    available = {*views, *exact.input_names}
    singles = {node: _single_node(optimized_float, node, operators) for node in nodes}
    singles = {
        node: single for node, single in singles.items() if available.issuperset(single.part.reads)
    }

    def compared(index: int) -> list[Alignment]:
        values = _values(exact, views, samples.read(index))
        return [_against_float(single, values) for single in singles.values()]

    sums = [Alignment()] * len(singles)
    for sample_alignments in side_by_side(compared, holdout_samples(len(samples))):
        sums = [total + single for total, single in zip(sums, sample_alignments, strict=True)]
    losses = [
        Loss(str(node.name), round(1.0 - total.cosine, DIGITS), _origins(node))
        for node, total in zip(singles, sums, strict=True)
    ]
    return tuple(sorted(losses, key=lambda loss: (not math.isnan(loss.lost), -loss.lost)))


def _single_node(graph: Graph, node: Node, operators: Operators) -> _SingleNode:
    clamp = absorbed(node)
    nodes = [node] if clamp is None else [node, clamp]
    output = result(node)
    return _SingleNode(str(output.name), of_nodes(graph, nodes, [output], operators))


def _origins(node: Node) -> tuple[str, ...]:
    clamp = absorbed(node)
    return origin(node) if clamp is None else (*origin(node), *origin(clamp))


def _values(exact: ExactSession, views: Mapping[str, View], feed: Feed) -> Mapping[str, np.ndarray]:
    """The dequantized tensors of the quantized program for one feed, by the float graph's names."""
    codes = exact.run([view.program for view in views.values()], feed)
    grids = (exact.program.tensors[view.program] for view in views.values())
    arrays = map(real_numbers, codes, grids)
    return {**feed, **dict(zip(views, arrays, strict=True))}


def _against_float(single: _SingleNode, values: Mapping[str, np.ndarray]) -> Alignment:
    (meant,) = single.part.run(values).values()
    (alignment,) = alignments(meant, [values[single.tensor].reshape(meant.shape)])
    return alignment
