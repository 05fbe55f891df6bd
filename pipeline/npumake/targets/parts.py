"""What the unit runs for a node: the node itself, or the parts of a function that it lacks.

A limit of a part holds for the part, with its own shapes and constants, never for the fused node.
"""

from __future__ import annotations

from npumake.graph import Node, recorded_parts
from npumake.targets.spelled_functions import spelled_out
from npumake.targets.target import Target


def parts_of(node: Node, target: Target) -> tuple[Node, ...]:
    """The nodes that the unit runs for `node`.

    The vendor's own tool reads the model's file, so a node that npumake fused is its parts there. A
    compiler reads the fused node; if it lacks that operator, it runs the parts.
    """
    parts = recorded_parts(node)
    if target.lists(node.op_type) and not (parts and target.reads_the_model):
        return (node,)
    return parts or spelled_out(node) or (node,)


def runs(node: Node, target: Target, is_requested: bool = False) -> bool:
    """Whether the unit runs the operator of each part by itself, or if the project requests it.
    Undocumented operators count as running."""
    runs_operator = target.runs_when_asked if is_requested else target.runs
    return all(runs_operator(part.op_type) for part in parts_of(node, target))


def takes_int16(node: Node, target: Target) -> bool:
    """Whether the unit runs each part on int16; undocumented operators count as running."""
    return all(target.takes_int16(part.op_type) for part in parts_of(node, target))


def is_documented(node: Node, target: Target) -> bool:
    """Whether each part is documented; otherwise the node counts as one that the unit runs."""
    return all(target.documents(part.op_type) for part in parts_of(node, target))
