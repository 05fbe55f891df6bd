"""What one stage tells the next about a graph, in its metadata: which nodes stay float though all
around them is on grids, which hand out their int32 sums, and what a person should know."""

from __future__ import annotations

import json
from collections.abc import Sequence

import onnx_ir as ir

from pipeline.graph.graph import Graph

FLOAT = "npumake.float"
SUMS = "npumake.sums"
GUARD = "npumake.guard"
NOTES = "npumake.notes"
BORDER = "npumake.border_rounding"
BORDER_ROUNDINGS = ("half_even", "half_away")


def keep_float(node: ir.Node) -> None:
    """The node is the CPU's, whatever its neighbours are."""
    node.metadata_props[FLOAT] = "1"


def is_kept_float(node: ir.Node) -> bool:
    return FLOAT in node.metadata_props


def guard(node: ir.Node) -> None:
    """The node adds what is nothing beside any code but zero: a divisor of codes reads through."""
    node.metadata_props[GUARD] = "1"


def is_guard(node: ir.Node) -> bool:
    return GUARD in node.metadata_props


def hand_out_sums(node: ir.Node) -> None:
    """What the node makes lies on no grid of codes: its sums are dequantized."""
    node.metadata_props[SUMS] = "1"


def hands_out_sums(node: ir.Node) -> bool:
    return SUMS in node.metadata_props


def round_border(graph: Graph, rule: str) -> None:
    """How the chip's CPU rounds a real number onto a grid, where that is not as ONNX does."""
    if rule != BORDER_ROUNDINGS[0]:
        graph.set_metadata({BORDER: rule})


def border_rounding(graph: Graph) -> str:
    """What `round_border` wrote; as ONNX does where somebody else wrote something there."""
    rule = graph.metadata.get(BORDER, "")
    return rule if rule in BORDER_ROUNDINGS else BORDER_ROUNDINGS[0]


def tell(graph: Graph, notes: Sequence[str]) -> None:
    """Sentences for whoever builds or opens the graph."""
    if notes:
        graph.set_metadata({NOTES: json.dumps(list(notes))})


def told(graph: Graph) -> tuple[str, ...]:
    """What `tell` wrote; nothing where somebody else wrote something there."""
    text = graph.metadata.get(NOTES, "[]")
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
