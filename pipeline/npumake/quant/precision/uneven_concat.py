"""Outputs joined from parts with different ranges.

A detector's last Concat joins distances of -4 .. 6 with scores of 0 .. 1. In integers they share
one 8-bit grid, and the widest part sets its step: a score keeps 25 of its 256 codes, and the
ranking of boxes by score becomes chance. Nothing computes behind such a Concat. On the CPU it costs
a copy, which the host makes of every output anyway, and each part keeps its own grid.
"""

from __future__ import annotations

from collections.abc import Mapping

from npumake.graph import Graph, Node, Value
from npumake.quant.precision.placement import MOVE_OPERATORS, activations, source_tensor

MAX_RESOLUTION_LOSS = 2.0  # one bit


def uneven_joins(graph: Graph, steps: Mapping[str, float]) -> list[Node]:
    """The Concats before the outputs with uneven parts: the grid of one part is at least
    MAX_RESOLUTION_LOSS times as fine as that of another.

    `steps` are the 8-bit scales of the observed tensors by name.
    """
    last: set[Node] = set()  # only data movements lead from these nodes to the outputs
    for node in reversed(graph.nodes()):
        readers = {use.node for value in node.outputs for use in value.uses()}
        if node.op_type in MOVE_OPERATORS and readers <= last:
            last.add(node)
    finest_coarsest: dict[Value, tuple[float, ...]] = {}  # of the parts of a Concat
    for node in graph.nodes("Concat"):
        own: set[float] = set()
        for part in map(source_tensor, activations(node)):
            step = steps.get(str(part.name))
            own.update(finest_coarsest.get(part, () if step is None else (step,)))
        finest_coarsest[node.outputs[0]] = (min(own), max(own)) if own else ()
    joins = (node for node in graph.nodes("Concat") if node in last)
    return [node for node in joins if _is_uneven(finest_coarsest[node.outputs[0]])]


def _is_uneven(steps: tuple[float, ...]) -> bool:
    return bool(steps) and min(steps) * MAX_RESOLUTION_LOSS <= max(steps)
