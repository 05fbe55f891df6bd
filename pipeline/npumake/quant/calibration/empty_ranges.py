"""A tensor that was always zero takes its scale from its neighbors.

    y = x + ..., x - ..., Concat        the range of y
    y = x * c + b                       T = max|y| / max|c|, so that b has codes

The reader decides; if its range is empty as well, the producer's inputs do. An arbitrary scale of 1
has ratios to its neighbors that no fixed point holds: LiteRT's ADD asserts 2 * s_in < 2**20 *
s_out, and a bias on the grid s_x * s_w is rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.engine.fusion import result
from npumake.graph import Graph, Node, Value, array
from npumake.quant.precision.grids import MIN_RANGE
from npumake.quant.precision.placement import activations, is_data_movement, source_tensor

Interval = tuple[float, float]
ADDITIVE = frozenset({"Add", "Concat", "Max", "Min", "Sub", "Sum", "Where"})
PRODUCTS = frozenset({"Conv", "ConvTranspose", "Div", "Gemm", "MatMul", "Mul"})


def neighbor_ranges(graph: Graph, ranges: Mapping[str, Interval]) -> dict[str, Interval]:
    """The ranges of empty tensors with a non-empty neighbor, by observed tensor of the float
    `graph`."""
    empty = {name for name, (low, high) in ranges.items() if _size((low, high)) < MIN_RANGE}
    if not empty:
        return {}
    near = _neighbors(graph, empty)
    beside = _beside(near)
    known_ranges = {name: interval for name, interval in ranges.items() if name not in empty}
    from_neighbors: dict[str, Interval] = {}
    waiting = set(near)
    while waiting:  # for a neighbor whose range is new
        new = {name: _range(near[name], known_ranges) for name in sorted(waiting)}
        resolved = {name: interval for name, interval in new.items() if interval is not None}
        from_neighbors |= resolved
        known_ranges |= resolved
        nodes = {node for name in resolved for node in (*near[name].readers, *near[name].makers)}
        waiting = {name for node in nodes for name in beside[node]}.difference(from_neighbors)
    return from_neighbors


class _Near(NamedTuple):
    """The nodes that read a tensor, and those that produce it."""

    readers: list[Node]
    makers: list[Node]


def _neighbors(graph: Graph, empty: set[str]) -> dict[str, _Near]:
    neighbors = {name: _Near([], []) for name in sorted(empty)}
    for node in graph.nodes():
        if is_data_movement(node) or not node.outputs:
            continue
        for name in {str(source_tensor(value).name) for value in activations(node)} & empty:
            neighbors[name].readers.append(node)
        output = str(source_tensor(result(node)).name)
        if output in neighbors:
            neighbors[output].makers.append(node)
    return neighbors


def _beside(near: Mapping[str, _Near]) -> dict[Node, set[str]]:
    """By node, the empty tensors that it reads or makes: one's range may give another's."""
    tensors: dict[Node, set[str]] = {}
    for name, nodes in near.items():
        for node in (*nodes.readers, *nodes.makers):
            tensors.setdefault(node, set()).add(name)
    return tensors


def _range(near: _Near, ranges: Mapping[str, Interval]) -> Interval | None:
    inputs = [interval for node in near.readers if (interval := _as_read(node, ranges)) is not None]
    if inputs:
        return min(inputs, key=_size)
    sources = [interval for node in near.makers for interval in _read(node, ranges)]
    return max(sources, key=_size, default=None)


def _as_read(node: Node, ranges: Mapping[str, Interval]) -> Interval | None:
    output = ranges.get(str(source_tensor(result(node)).name))
    if output is None:
        return None
    if node.op_type in ADDITIVE:
        return output
    if node.op_type not in PRODUCTS:
        return None
    other = max((_reach(value, ranges) for value in node.inputs[:2]), default=0.0)
    top = _size(output) / other if other > 0 else 0.0
    return (-top, top) if MIN_RANGE < top < np.finfo(np.float32).max else None


def _read(node: Node, ranges: Mapping[str, Interval]) -> Iterator[Interval]:
    names = (str(source_tensor(value).name) for value in activations(node))
    return (ranges[name] for name in names if name in ranges)


def _reach(value: Value | None, ranges: Mapping[str, Interval]) -> float:
    constant = array(value)
    if constant is not None:
        return float(np.abs(constant).max(initial=0.0))
    name = "" if value is None else str(source_tensor(value).name)
    return _size(ranges[name]) if name in ranges else 0.0


def _size(interval: Interval) -> float:
    return max(-interval[0], interval[1], 0.0)
