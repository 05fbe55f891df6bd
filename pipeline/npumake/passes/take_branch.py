"""Replaces an If with a constant condition by the selected branch."""

from __future__ import annotations

from npumake.graph import Graph, Node, array, attribute, inline


def take_branch(graph: Graph) -> int:
    decided = [node for node in graph.nodes("If") if _is_decided(node)]
    for node in decided:
        condition = array(node.inputs[0])
        is_true = condition is not None and bool(condition.reshape(-1)[0])
        inline(graph, node, attribute(node, "then_branch" if is_true else "else_branch"))
    return len(decided)


def _is_decided(node: Node) -> bool:
    condition = array(node.inputs[0])
    return condition is not None and condition.size == 1
