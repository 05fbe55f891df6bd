"""Cuts a graph into parts.

at layers            step k has all nodes behind k layers, so that a layer can change before its
                     output is read. Outputs that a later step reads are carried. Q/DQ of constants
                     belong to every step that reads them and are never carried
behind a tensor      the nodes that depend on it, and the tensors that they read from other nodes
in even segments     at the positions that the fewest values cross
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from npumake.engine.fusion import CLAMPS
from npumake.graph import (
    Graph,
    Node,
    SerializedGraph,
    SerializedNode,
    Value,
    is_given,
    producer,
    reads,
    shape,
)
from npumake.graph.qdq import is_qdq


class LayerStep(NamedTuple):
    """Nodes with equally many layers before them, and the tensors that later steps read."""

    nodes: list[Node]
    carried: list[Value]

    @property
    def bytes(self) -> int:
        """The carried bytes of one sample."""
        return sum(4 * math.prod(shape(value)) for value in self.carried)


def steps_at(graph: Graph, layers: Collection[Node], *, first: bool = False) -> list[LayerStep]:
    """The steps of the graph up to its last layer. A layer is the last node of its step; with
    `first` it begins one, with all its readers."""
    constant = _of_constants(graph)
    depth: dict[Node, int] = {}
    last: dict[Value, int] = {}  # the last step that reads the value
    for node in graph.nodes():
        if node in constant:
            continue
        read = [value for value in reads(node) if producer(value) not in constant]
        makers = [maker for value in read if (maker := producer(value)) is not None]
        before = max((depth[m] + (not first and m in layers) for m in makers), default=0)
        depth[node] = before + (first and node in layers)
        last |= {value: max(last.get(value, 0), depth[node]) for value in read}
    count = 1 + max((depth[node] for node in layers), default=-1)
    nodes: list[dict[Node, None]] = [{} for _ in range(count)]  # in order, each once
    for node, at in depth.items():
        for members in nodes[at : at + 1]:
            members.update(dict.fromkeys((*_needed(node, constant), node)))
    cut = [LayerStep([*members], []) for members in nodes]
    alive = [value for value in last if not is_given(value)]
    for at, step in enumerate(cut):
        step.carried.extend(v for v in alive if _producing_step(v, depth) <= at < last[v])
    return cut


def _of_constants(graph: Graph) -> set[Node]:
    """Q/DQ of constants."""
    nodes: set[Node] = set()
    for node in graph.nodes():
        constants = (is_given(value) or producer(value) in nodes for value in reads(node))
        if is_qdq(node) and all(constants):
            nodes.add(node)
    return nodes


def _needed(node: Node, constant: Collection[Node]) -> list[Node]:
    """The Q/DQ of constants that the node reads, in order."""
    pairs: list[Node] = []
    waiting = [node]
    while waiting:
        makers = [m for value in reads(waiting.pop()) if (m := producer(value)) is not None]
        constants = [maker for maker in makers if maker in constant]
        pairs += reversed(constants)
        waiting += constants
    return pairs[::-1]


def _producing_step(value: Value, depth: Mapping[Node, int]) -> int:
    """The step that produces the value; -1 for model inputs."""
    maker = producer(value)
    return -1 if maker is None else depth[maker]


class Downstream(NamedTuple):
    """A tensor by name, the nodes downstream of it in order, and their inputs."""

    name: str
    pieces: list[SerializedNode]
    cut: list[str]


def downstream_parts(written: SerializedGraph, names: Sequence[str]) -> list[Downstream]:
    """The downstream part of each named tensor that a node reads or that is an output."""
    candidates = (_downstream(written, name) for name in names)
    return [part for part in candidates if part.pieces or part.name in written.outputs]


def _downstream(written: SerializedGraph, name: str) -> Downstream:
    reached, pieces, cut = {name}, [], {name: None}
    for piece in written.pieces:
        if not reached.isdisjoint(piece.reads):
            pieces.append(piece)
            reached.update(piece.makes)
            cut |= {n: None for n in piece.reads if n not in reached and not written.is_constant(n)}
    return Downstream(name, pieces, list(cut))


def even_segments(
    pieces: Sequence[SerializedNode], crossing: Sequence[int], count: int
) -> list[tuple[int, int]]:
    """(start, stop) of about `count` equal parts of the nodes, each border moved to the nearby
    position with the least `crossing`. A clamp stays with its node."""
    starts = [number for number, piece in enumerate(pieces) if piece.op_type not in CLAMPS]
    part = len(starts) / count
    ends = {0}
    for end in (part * number for number in range(1, count)):
        near = range(max(1, math.ceil(end - part / 2)), min(len(starts), int(end + part / 2) + 1))
        by = {starts[at]: (crossing[starts[at]], abs(at - end)) for at in near}
        ends |= {min(by, key=by.__getitem__)} if by else set()
    return [(a, b) for a, b in pairwise([*sorted(ends), len(pieces)]) if a < b]
