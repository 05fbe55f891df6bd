"""A padded tensor holds the pad value too: Pad outputs codes of its input's grid."""

from __future__ import annotations

from collections.abc import Mapping

from npumake.engine.moving import fill_of
from npumake.engine.rules import has_kernel
from npumake.graph import Graph
from npumake.quant.precision.placement import source_tensor

Interval = tuple[float, float]


def padded_ranges(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """The ranges that a pad value widens, by observed tensor of the float `graph`."""
    widened: dict[str, Interval] = {}
    for node in graph.nodes("Pad"):
        fill = fill_of(node)
        if not fill or not has_kernel(node):
            continue
        name = str(source_tensor(node.outputs[0]).name)
        if name in ranges:
            low, high = widened.get(name, ranges[name])
            widened[name] = (min(low, fill), max(high, fill))
    return widened
