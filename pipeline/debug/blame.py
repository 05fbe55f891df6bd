"""Who loses most: the nodes in the order of what each loses itself.

    loss of a node = (1 - cosine of what it makes) - max (1 - cosine of what it reads)

What was lost before a node is not its fault. Cosines are those of the comparison, float against
integers.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.debug.compare import Comparison
from pipeline.engine.fusion import result
from pipeline.graph import Graph

DIGITS = 6


class Loss(NamedTuple):
    """What a node loses of the cosine; the trained nodes it computes."""

    node: str
    lost: float
    origin: tuple[str, ...]


def local_losses(graph: Graph, comparison: Comparison) -> tuple[Loss, ...]:
    """Of every node that was compared, the largest first, of equals the one nearer the input."""
    rows = {row.node: row for row in comparison.rows}
    nodes = [node for node in graph.nodes() if str(node.name) in rows]
    behind = {str(result(node).name): 1.0 - rows[str(node.name)].cosine for node in nodes}
    losses = []
    for node in nodes:
        read = [behind.get(str(value.name), 0.0) for value in node.inputs if value is not None]
        own = behind[str(result(node).name)] - max(read, default=0.0)
        row = rows[str(node.name)]
        losses.append(Loss(row.node, round(own, DIGITS), row.origin))
    return tuple(sorted(losses, key=lambda loss: -loss.lost))
