"""Removes nodes and constants that no output depends on."""

from __future__ import annotations

from npumake.graph import Graph


def drop_unused(graph: Graph) -> int:
    return graph.drop_unused()
