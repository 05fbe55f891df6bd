"""What one stage tells the next about a graph, in its metadata: which nodes stay float though all
around them is on grids, which compute in float16, which hand out their int32 sums, and what a
person should know."""

from __future__ import annotations

import json
from collections.abc import Sequence

import onnx_ir as ir

from npumake.graph.graph import Graph
from npumake.graph.proto import WIDE_BIAS

FLOAT = "npumake.float"
SUMS = "npumake.sums"
HALF = "npumake.float16"
UNIT = "npumake.unit"
GUARD = "npumake.guard"
WRITTEN_FOR = "npumake.written_for"
NOTES = "npumake.notes"
BORDER = "npumake.border_rounding"
BORDER_ROUNDINGS = ("half_even", "half_away")
OPERATORS = "npumake.operators"


def keep_float(node: ir.Node) -> None:
    """The node is the CPU's, whatever its neighbours are."""
    node.metadata_props[FLOAT] = "1"


def is_kept_float(node: ir.Node) -> bool:
    return FLOAT in node.metadata_props


def run_on_unit(node: ir.Node) -> None:
    """The node is the unit's, whatever operators that lists: a view that it takes as part of
    another node."""
    node.metadata_props[UNIT] = "1"


def runs_on_unit(node: ir.Node) -> bool:
    return UNIT in node.metadata_props


def mark_float16(node: ir.Node) -> None:
    """The unit computes the node in float16."""
    node.metadata_props[HALF] = "1"


def is_float16(node: ir.Node) -> bool:
    return HALF in node.metadata_props


def mark_wide_bias(node: ir.Node) -> None:
    """The bias of the layer has more than 32 bits on the grid of its products."""
    node.metadata_props[WIDE_BIAS] = "1"


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


def write_for(node: ir.Node, op_type: str) -> None:
    """The node is written in the place of a trained node of another operator."""
    node.metadata_props.setdefault(WRITTEN_FOR, op_type)


def written_for(node: ir.Node) -> str:
    """That operator; empty where the node is what was trained."""
    return node.metadata_props.get(WRITTEN_FOR, "")


def round_border(graph: Graph, rule: str) -> None:
    """How the chip's CPU rounds a real number onto a grid, where that is not as ONNX does."""
    if rule != BORDER_ROUNDINGS[0]:
        graph.set_metadata({BORDER: rule})


def border_rounding(graph: Graph) -> str:
    """What `round_border` wrote; as ONNX does where somebody else wrote something there."""
    rule = graph.metadata.get(BORDER, "")
    return rule if rule in BORDER_ROUNDINGS else BORDER_ROUNDINGS[0]


def annotate(graph: Graph, notes: Sequence[str]) -> None:
    """Sentences for whoever builds or opens the graph."""
    if notes:
        graph.set_metadata({NOTES: json.dumps(list(notes))})


def annotations_of(graph: Graph) -> tuple[str, ...]:
    """What `tell` wrote; nothing where somebody else wrote something there."""
    text = graph.metadata.get(NOTES, "[]")
    try:
        notes = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, notes)) if isinstance(notes, list) else ()


def number_operators(graph: Graph, names: Sequence[Sequence[str]]) -> None:
    """The nodes that each operator of the trained file became, by its number in the file."""
    graph.set_metadata({OPERATORS: json.dumps([list(nodes) for nodes in names])})


def operator_nodes(graph: Graph, number: int) -> tuple[str, ...]:
    """Their names in the trained graph; none of a file whose operators have no numbers."""
    operators = _operators(graph)
    nodes = operators[number] if number < len(operators) else []
    return tuple(map(str, nodes)) if isinstance(nodes, list) else ()


def operator_count(graph: Graph) -> int:
    """How many operators the file has, where they have numbers."""
    return len(_operators(graph))


def _operators(graph: Graph) -> list[object]:
    """Nothing where somebody else wrote something there."""
    try:
        operators = json.loads(graph.metadata.get(OPERATORS, "[]"))
    except ValueError:
        return []
    return operators if isinstance(operators, list) else []
