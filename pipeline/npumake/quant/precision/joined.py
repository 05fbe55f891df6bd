"""Concat inputs take the Concat's grid if nothing else reads them.

Concat joins codes: each part is on the grid of the result or is requantized. If nothing else
computes with a part, its producer writes that grid at once, so values are rounded once. Pools and
other data movements of it follow. Of several Concats that read a tensor, the last that reads it
directly gives the grid. Parts from another subgraph keep their own.

Source: tables of hb_mapper 1.24.3, which list the parts that are requantized.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from npumake.engine.fusion import absorbed
from npumake.graph import Graph, Node, Value, producer
from npumake.quant.precision.grids import Grids
from npumake.quant.precision.placement import (
    activations,
    is_data_movement,
    source_tensor,
    subgraphs,
)


def with_concat_grids(
    graph: Graph, chip: Collection[Node], grids: Mapping[str, Grids]
) -> dict[str, Grids]:
    """`grids`, by observed tensor of the float `graph`; the `chip` nodes run on the unit."""
    joined, numbers = dict(grids), subgraphs(graph, set(chip))
    concats = [node for node in graph.nodes("Concat") if node in chip and absorbed(node) is None]
    joins = {node: index for index, node in enumerate(concats)}
    for join in reversed(concats):
        whole = str(join.outputs[0].name)
        for part in map(source_tensor, activations(join)):
            maker, name = producer(part), str(part.name)
            in_place = maker is not None and numbers.get(maker) == numbers[join]
            if in_place and {whole, name} <= joined.keys() and _owner(part, joins) is join:
                joined[name] = joined[whole]
    return joined


def _owner(part: Value, joins: Mapping[Node, int]) -> Node | None:
    """The Concat that gives a tensor its grid, of `joins` by their order; None if something else
    computes with it."""
    itself, moved = list[Node](), list[Node]()
    waiting = [(part, itself)]
    while waiting:
        value, joins_of = waiting.pop()
        if value.is_graph_output():
            return None
        for node in (use.node for use in value.uses()):
            if node in joins:
                joins_of.append(node)
            elif is_data_movement(node):
                waiting.append((node.outputs[0], moved))
            else:
                return None
    return max(itself or moved, key=joins.__getitem__, default=None)
