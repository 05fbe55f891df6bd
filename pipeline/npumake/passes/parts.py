"""Fuses nodes into one that knows them as its parts, as they stand where each is an output."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from npumake.graph import Graph, Node, Value, part, record_parts
from npumake.passes.plain_arithmetic import plain_arithmetic
from npumake.passes.plain_clamps import plain_clamps
from npumake.passes.plain_sums import plain_sums

PLAIN = (plain_arithmetic, plain_clamps, plain_sums)  # rewrite a node whatever its neighbors are


def fuse(
    graph: Graph, nodes: Collection[Node], op_type: str, inputs: Sequence[Value], **attributes: Any
) -> None:
    """The last of `nodes` becomes the operator that they compute; the others are absorbed."""
    ordered = [node for node in graph.nodes() if node in nodes]
    top, parts = ordered[-1], plain_parts(graph, ordered)
    graph.become(top, op_type, inputs, **attributes)
    record_parts(top, parts)
    graph.absorb(top, *(node for node in nodes if node is not top))


def plain_parts(graph: Graph, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, in order, after the passes that rewrite one node."""
    own = part(graph, nodes, [node.outputs[0] for node in nodes]).with_shapes()
    for run_pass in PLAIN:
        run_pass(own)
    return tuple(own.with_shapes().nodes())
