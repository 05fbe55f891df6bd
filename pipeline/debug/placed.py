"""Where every node of a float model would run: what a checker tells before anything is built."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.engine.fusion import absorbed
from pipeline.graph import Graph
from pipeline.quant.placement import on_chip, subgraphs
from pipeline.targets.target import Target


@dataclass(frozen=True)
class Placed:
    """One node; `subgraph` is None on the CPU."""

    node: str
    on: str
    subgraph: int | None
    type: str


def placed(graph: Graph, target: Target) -> tuple[Placed, ...]:
    """Every node in graph order, a clamp with the node that absorbs it.

    The limits of single operators are not looked at: a node may still be too large for the chip.
    """
    numbers = subgraphs(graph, on_chip(graph, target))
    clamps = {absorbed(node) for node in graph.nodes()}
    return tuple(
        Placed(
            str(node.name),
            target.unit if node in numbers else "CPU",
            numbers.get(node),
            node.op_type
            if (clamp := absorbed(node)) is None
            else f"{node.op_type}+{clamp.op_type}",
        )
        for node in graph.nodes()
        if node not in clamps
    )
