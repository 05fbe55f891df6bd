"""Metadata that one stage leaves in a graph for the next: nodes kept in float between quantized
ones, nodes in float16, int32 outputs, and notes for the user."""

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
    """Assigns the node to the CPU, independent of its neighbors."""
    node.metadata_props[FLOAT] = "1"


def is_kept_float(node: ir.Node) -> bool:
    return FLOAT in node.metadata_props


def run_on_unit(node: ir.Node) -> None:
    """Assigns the node to the NPU even if its target lacks the operator: a view that the NPU fuses
    into another node."""
    node.metadata_props[UNIT] = "1"


def runs_on_unit(node: ir.Node) -> bool:
    return UNIT in node.metadata_props


def mark_float16(node: ir.Node) -> None:
    """The NPU computes the node in float16."""
    node.metadata_props[HALF] = "1"


def is_float16(node: ir.Node) -> bool:
    return HALF in node.metadata_props


def mark_wide_bias(node: ir.Node) -> None:
    """The layer's bias needs more than 32 bits on the grid of its products."""
    node.metadata_props[WIDE_BIAS] = "1"


def guard(node: ir.Node) -> None:
    """The node adds a number that only matters for 0: it protects a divisor, and quantization
    ignores it."""
    node.metadata_props[GUARD] = "1"


def is_guard(node: ir.Node) -> bool:
    return GUARD in node.metadata_props


def hand_out_sums(node: ir.Node) -> None:
    """The node's output is its int32 sums, dequantized without a grid of codes."""
    node.metadata_props[SUMS] = "1"


def hands_out_sums(node: ir.Node) -> bool:
    return SUMS in node.metadata_props


def write_for(node: ir.Node, op_type: str) -> None:
    """Records the operator type of the trained node that the node replaces."""
    node.metadata_props.setdefault(WRITTEN_FOR, op_type)


def written_for(node: ir.Node) -> str:
    """The type that `write_for` recorded; empty for a trained node."""
    return node.metadata_props.get(WRITTEN_FOR, "")


def round_border(graph: Graph, rule: str) -> None:
    """Records how the chip's CPU rounds when it quantizes, if that differs from ONNX."""
    if rule != BORDER_ROUNDINGS[0]:
        graph.set_metadata({BORDER: rule})


def border_rounding(graph: Graph) -> str:
    """The rule that `round_border` recorded; ONNX's for unknown content."""
    rule = graph.metadata.get(BORDER, "")
    return rule if rule in BORDER_ROUNDINGS else BORDER_ROUNDINGS[0]


def annotate(graph: Graph, notes: Sequence[str]) -> None:
    """Adds notes for users who build or open the graph."""
    if notes:
        graph.set_metadata({NOTES: json.dumps(list(notes))})


def annotations_of(graph: Graph) -> tuple[str, ...]:
    """The notes that `annotate` added; none for unknown content."""
    text = graph.metadata.get(NOTES, "[]")
    try:
        notes = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, notes)) if isinstance(notes, list) else ()


def number_operators(graph: Graph, names: Sequence[Sequence[str]]) -> None:
    """Records the nodes of each operator, by its index in the trained file."""
    graph.set_metadata({OPERATORS: json.dumps([list(nodes) for nodes in names])})


def operator_nodes(graph: Graph, number: int) -> tuple[str, ...]:
    """The trained nodes of an operator; none for a file without operator indices."""
    operators = _operators(graph)
    nodes = operators[number] if number < len(operators) else []
    return tuple(map(str, nodes)) if isinstance(nodes, list) else ()


def operator_count(graph: Graph) -> int:
    """The number of operators in the file, if it has operator indices."""
    return len(_operators(graph))


def _operators(graph: Graph) -> list[object]:
    """The recorded lists; none for unknown content."""
    try:
        operators = json.loads(graph.metadata.get(OPERATORS, "[]"))
    except ValueError:
        return []
    return operators if isinstance(operators, list) else []
