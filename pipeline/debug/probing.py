"""Probing: the answers of a float model of which a few places are quantized, again and again.

    head     the quantized places, and all they touch up to the end of their segment
    tail     the segments behind, in float: each is one session for all probes

The float model runs once per sample, and what a head or a segment may read of it is kept on disk.
A probe runs its head, then those segments that read something changed; what lies before is never
run again, and only the head is set up anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.data.samples import Feed
from pipeline.debug.calibration_nodes import CalibrationNode, quantize, without
from pipeline.debug.kept import Kept
from pipeline.engine.fusion import absorbed
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Node, Value, array, part, producer, reads
from pipeline.kernels.measure import Agreement, agreement

SEGMENTS = 12  # more spare work inside a segment, and cost more borders that are not fused over

Places = Sequence[CalibrationNode]  # those that quantize
Sums = tuple[Agreement, ...]  # by output, over all samples


class _Head(NamedTuple):
    """`graph` is None where the answers do not hang on the places."""

    graph: Graph | None
    last: int  # the segment it reaches into
    answers: tuple[str, ...]


class _Segment(NamedTuple):
    nodes: list[Node]
    reads: tuple[str, ...]
    made: tuple[str, ...]  # what others read, and answers
    session: FloatSession


class Probing:
    """Probes of one calibrated graph, over all of `feeds`. Raises GraphError."""

    def __init__(
        self,
        calibrated: Graph,
        probes: Sequence[Places],
        feeds: Iterable[Feed],
        operators: Operators = NO_OPERATORS,
    ) -> None:
        self._operators = operators
        real = without(calibrated)
        slices = _slices(real)
        self._place = {str(n.name): i for i, chosen in enumerate(slices) for n in chosen}
        self._segments = [self._segment(real, chosen) for chosen in slices]
        self._answers = [str(value.name) for value in real.outputs]
        self._heads = [self._head(real, places) for places in probes]
        self._kept = self._float_run(real, feeds)

    def sums(self, at_once: int | None = None) -> Iterator[Sums]:
        """Those of every probe in order, `at_once` at a time, by default one per core."""
        return side_by_side(self._probe, self._heads, at_once)

    def _segment(self, real: Graph, nodes: list[Node]) -> _Segment:
        inside = set(nodes)
        made = [v for node in nodes for v in node.outputs if _leaves(v, inside)]
        return _Segment(
            nodes,
            tuple(_read_by(nodes)),
            tuple(str(value.name) for value in made),
            float_session(part(real, nodes, made), self._operators),
        )

    def _head(self, real: Graph, places: Places) -> _Head:
        seeds = _seeds(real, places)
        last = max((self._place[name] for name in seeds), default=-1)
        chosen = [node for node in _touched(real, seeds) if self._place[str(node.name)] <= last]
        if not chosen:
            return _Head(None, last, tuple(self._answers))
        made = [v for node in chosen for v in node.outputs if _leaves(v, set(chosen))]
        graph, answers = part(real, chosen, made), list(self._answers)
        reals = quantize(graph, places)
        for one in places:
            for index in one.answers:
                answers[index] = reals[one.name]
        quantized = (name for name in answers if name not in self._answers)
        graph.expose(dict.fromkeys([*(str(value.name) for value in made), *quantized]))
        return _Head(graph, last, tuple(answers))

    def _float_run(self, real: Graph, feeds: Iterable[Feed]) -> Kept:
        """What the heads and the segments read of the float model, and its answers."""
        heads = (head.graph for head in self._heads if head.graph is not None)
        needed = {*self._answers, *(str(v.name) for graph in heads for v in graph.inputs)}
        needed.update(name for segment in self._segments for name in segment.reads)
        watched = real.copy()
        watched.expose(sorted(needed))
        session, kept = float_session(watched, self._operators), Kept()
        names = session.output_names
        for made in side_by_side(lambda feed: session.run(None, feed), feeds):
            kept.keep(dict(zip(names, made, strict=True)))
        return kept

    def _probe(self, head: _Head) -> Sums:
        session = None if head.graph is None else float_session(head.graph, self._operators)
        sums = [Agreement()] * len(self._answers)
        for index in range(len(self._kept)):
            real = self._kept.at(index)
            changed = {} if session is None else _run(session, real, {})
            for segment in self._segments[head.last + 1 :]:
                if not changed.keys().isdisjoint(segment.reads):
                    changed |= _run(segment.session, real, changed)
            for number, (meant, made) in enumerate(zip(self._answers, head.answers, strict=True)):
                known = real[meant]
                sums[number] += agreement(known, changed.get(made, known))
        return tuple(sums)


def _run(
    session: FloatSession, real: Mapping[str, np.ndarray], changed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    feeds = {n: changed[n] if n in changed else real[n] for n in session.input_names}
    return dict(zip(session.output_names, session.run(None, feeds), strict=True))


def _slices(graph: Graph) -> list[list[Node]]:
    """The nodes in order, in SEGMENTS parts; a clamp stays with its node."""
    nodes = graph.nodes()
    clamps = {absorbed(node) for node in nodes}
    starts = [index for index, node in enumerate(nodes) if node not in clamps]
    ends = [starts[len(starts) * part // SEGMENTS] for part in range(SEGMENTS)] + [len(nodes)]
    return [nodes[start:end] for start, end in pairwise(ends) if start < end]


def _seeds(real: Graph, places: Places) -> set[str]:
    """The nodes that read what is quantized; of an answer the node that makes it."""
    values = real.values()
    makers = (producer(values[one.tensor]) for one in places if one.answers)
    read = {name for one in places for name, _ in one.reads}
    return read | {str(maker.name) for maker in makers if maker is not None}


def _touched(graph: Graph, seeds: Collection[str]) -> list[Node]:
    """These nodes, and all behind them, in order."""
    changed: set[Value] = set()
    found = []
    for node in graph.nodes():
        if node.name in seeds or not changed.isdisjoint(reads(node)):
            found.append(node)
            changed.update(node.outputs)
    return found


def _read_by(nodes: Collection[Node]) -> list[str]:
    """What is read, constants aside, and not made by the nodes themselves."""
    inside = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(v for node in nodes for v in reads(node) if array(v) is None)
    return [str(value.name) for value in read if value not in inside]


def _leaves(value: Value, inside: set[Node]) -> bool:
    return value.is_graph_output() or any(use.node not in inside for use in value.uses())
