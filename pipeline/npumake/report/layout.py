"""Layered drawing of a graph with few crossings (Sugiyama et al., 1981).

    layer of a node = 1 + the largest layer of its producers
    an edge over several layers bends through a seat of its own in each layer
    order in a layer: by the mean position of the neighbors, swept down and up SWEEPS times
    x: the mean of the neighbors' x, at least one width right of the previous item

Columns have width 1, layers height 1; x is a multiple of a quarter column. The drawing is
deterministic: ties keep the order of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npumake.graph import Graph, Node, producer

SWEEPS = 6
MAX_BENT_LAYERS = 24  # longer edges are drawn straight, to limit the seats
QUARTER = 4


@dataclass(frozen=True)
class GraphDrawing:
    """`places` are (x, layer) of each node, in graph order. An edge is (from, to, bends): two node
    indices and the points between."""

    places: tuple[tuple[float, int], ...]
    edges: tuple[tuple[int, int, tuple[tuple[float, int], ...]], ...]


def drawing(graph: Graph) -> GraphDrawing:
    nodes = graph.nodes()
    number = {node: index for index, node in enumerate(nodes)}
    edges = [
        (number[maker], number[node])
        for node in nodes
        for maker in _makers(node)
        if maker in number
    ]
    return laid_out(len(nodes), edges)


def _makers(node: Node) -> Iterable[Node]:
    makers = (producer(value) for value in node.inputs if value is not None)
    return dict.fromkeys(maker for maker in makers if maker is not None)


def laid_out(count: int, edges: Sequence[tuple[int, int]]) -> GraphDrawing:
    """The drawing of `count` nodes in topological order."""
    layer = [0] * count
    for start, end in edges:
        layer[end] = max(layer[end], layer[start] + 1)
    chains: list[list[int]] = []
    for start, end in edges:
        between = range(layer[start] + 1, layer[end])
        seats = between if len(between) <= MAX_BENT_LAYERS else ()
        chains.append([start, *range(len(layer), len(layer) + len(seats)), end])
        layer.extend(seats)
    links = [pair for chain in chains for pair in pairwise(chain) if _are_near(layer, *pair)]
    x = _columns(layer, links)
    return GraphDrawing(
        tuple((x[node], layer[node]) for node in range(count)),
        tuple(
            (chain[0], chain[-1], tuple((x[seat], layer[seat]) for seat in chain[1:-1]))
            for chain in chains
        ),
    )


def _are_near(layer: Sequence[int], start: int, end: int) -> bool:
    return layer[end] - layer[start] == 1


def _columns(layer: Sequence[int], links: Sequence[tuple[int, int]]) -> list[float]:
    """The x of every node and seat."""
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for start, end in links:
        above[end].append(start)
        below[start].append(end)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for item, number in enumerate(layer):
        rows[number].append(item)
    x = [0.0] * len(layer)
    for row in rows:
        _place(row, list(map(float, range(len(row)))), x)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _settle(row, above if down else below, x)
    left = min(x, default=0.0)
    return [round((position - left) * QUARTER) / QUARTER for position in x]


def _settle(row: list[int], neighbors: Sequence[Sequence[int]], x: list[float]) -> None:
    """Sort the items of a layer by the mean position of their neighbors, and place them."""
    targets = {item: _mean([x[other] for other in neighbors[item]], x[item]) for item in row}
    row.sort(key=targets.__getitem__)
    _place(row, [targets[item] for item in row], x)


def _place(row: Sequence[int], targets: Sequence[float], x: list[float]) -> None:
    """Place each item at its target, at least 1 right of the previous one; then shift all back by
    the mean displacement."""
    positions: list[float] = []
    for target in targets:
        positions.append(max(target, positions[-1] + 1.0) if positions else target)
    late = sum(positions) - sum(targets)
    for item, target in zip(row, positions, strict=True):
        x[item] = target - late / len(row)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
