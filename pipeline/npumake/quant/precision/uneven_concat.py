"""Answers that are pieced together of parts with ranges of their own.

A detector's last Concat puts distances of -4 .. 6 beside scores of 0 .. 1. In integers they share
one grid of 8 bits, and the widest part sets its step: a score has 25 codes left of its 256, and
whatever ranks the boxes by it ranks by chance. Behind such a Concat nothing computes, so on the CPU
it costs a copy, which the host makes of every answer anyhow, and each part stays on its own grid.
"""

from __future__ import annotations

from collections.abc import Mapping

from npumake.graph import Graph, Node
from npumake.quant.precision.placement import PASSIVE, concat_parts

LOST = 2.0  # a part that would lose this factor of its resolution, one bit, loses too much


def uneven_joins(graph: Graph, steps: Mapping[str, float]) -> list[Node]:
    """The Concats, with only moves behind them, some part of which would alone be on a grid at
    least LOST times as fine as another's. `steps` are the scales of the observed tensors at 8 bits,
    by name."""
    last: set[Node] = set()  # nodes from which only moves lead to the outputs
    for node in reversed(graph.nodes()):
        readers = {use.node for value in node.outputs for use in value.uses()}
        if node.op_type in PASSIVE and readers <= last:
            last.add(node)
    joins = [node for node in graph.nodes("Concat") if node in last]
    return [node for node in joins if _is_uneven(node, steps)]


def _is_uneven(join: Node, steps: Mapping[str, float]) -> bool:
    names = (str(part.name) for part in concat_parts(join.outputs[0]))
    own = [steps[name] for name in names if name in steps]
    return bool(own) and min(own) * LOST <= max(own)
