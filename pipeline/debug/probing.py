"""Probing: the answers of a float model of which a few places are quantized, again and again.

    segment    some nodes one behind the other, in float: one session for all probes
    head       what a probe changes inside the segments where its places are: copies of the nodes
               that it touches, behind the quantized places
    span       the heads that lie in the same segments, all of them one session

The float model runs once per sample, segment by segment, and what crosses a border is kept on disk.
A span gives what each of its probes changes at the borders behind it; a probe then runs those
segments that read something changed. What lies before is never run again, no session is set up for
a probe alone, and each probe computes exactly what it changes.

With n nodes, p probes, m samples and s segments, heads are p * n / 2s nodes to set up; there are 2s
sessions; and in all m * p * s / 2 borders are crossed. The sum is least at

    s = sqrt(p * n / (4 * SESSION + m * p * BORDER))

where a session costs as much as SESSION nodes, and a border as much as a part BORDER of one. Many
samples would have one segment: FEWEST give every thread some work. Of a long segment the heads fill
several sessions, none of more than about LARGEST nodes: memory and what an interrupted run loses so
do not grow with the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.data.samples import Feed, Samples
from pipeline.debug.calibration_nodes import CalibrationNode, quantize, without, without_weights
from pipeline.debug.kept import Kept
from pipeline.engine.fusion import absorbed
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Fork, Graph, Node, Value, array, fork, has_bodies, part, producer, reads
from pipeline.kernels.measure import Agreement, agreements

SESSION, BORDER = 10.0, 0.2
FEWEST, LARGEST = 4, 400

Places = Sequence[CalibrationNode]  # those that quantize
Sums = tuple[Agreement, ...]  # by output, over all samples
Values = Mapping[str, np.ndarray]


class _Segment(NamedTuple):
    nodes: list[Node]
    reads: tuple[str, ...]
    session: FloatSession


class _Probe(NamedTuple):
    """`replaced` are tensors that nobody reads in float any more, `seeds` the nodes that change
    first, in segments from `first` to `last`."""

    number: int
    places: Places
    replaced: frozenset[str]
    seeds: frozenset[str]
    first: int
    last: int


class _Head(NamedTuple):
    """What it changes, by the names of the float model → of its session; and the answers, under
    the former."""

    changed: dict[str, str]
    answers: tuple[str, ...]


class Probing:
    """Probes of one calibrated graph, over all samples. Raises GraphError."""

    def __init__(
        self,
        calibrated: Graph,
        probes: Sequence[Places],
        samples: Samples,
        operators: Operators = NO_OPERATORS,
    ) -> None:
        self._operators = operators
        self._samples = samples
        self._real = without(calibrated)
        self._values = self._real.values()
        self._answers = [str(value.name) for value in self._real.outputs]
        nodes = self._real.nodes()
        slices = _slices(nodes, _segments(len(nodes), len(probes), len(samples)))
        self._segments = [self._segment(nodes) for nodes in slices]
        self._place = {str(n.name): i for i, nodes in enumerate(slices) for n in nodes}
        self._probes = [self._probe(number, places) for number, places in enumerate(probes)]

    def sums(self, at_once: int | None = None) -> Iterator[tuple[int, Sums]]:
        """The number of each probe and its sums, those of a span together, `at_once` spans at a
        time, by default one per core."""
        kept = self._float_run(at_once)
        for found in side_by_side(lambda span: self._span(span, kept), self._spans(), at_once):
            yield from found

    def _session(self, graph: Graph) -> FloatSession:
        return float_session(graph, self._operators, fusion="floats")

    def _segment(self, nodes: list[Node]) -> _Segment:
        inside = set(nodes)
        made = [v for node in nodes for v in node.outputs if _leaves(v, inside)]
        graph = part(self._real, nodes, made)
        return _Segment(nodes, tuple(_read_by(nodes)), self._session(graph))

    def _probe(self, number: int, places: Places) -> _Probe:
        replaced = _replaced(places, self._values, self._real.outputs)
        seeds = _seeds(places, self._values, replaced)
        at = [self._place[name] for name in seeds]
        return _Probe(number, places, replaced, seeds, min(at, default=0), max(at, default=-1))

    def _spans(self) -> list[list[_Probe]]:
        """The probes of each session; alone where nodes hold graphs, which copies cannot."""
        alone = any(has_bodies(node) for node in self._real.nodes())
        found: dict[tuple[int, int, int], list[_Probe]] = {}
        for probe in self._probes:
            key = (probe.first, probe.last, probe.number if alone else 0)
            found.setdefault(key, []).append(probe)
        return [some for key in sorted(found) for some in self._in_sessions(found[key])]

    def _in_sessions(self, probes: list[_Probe]) -> list[list[_Probe]]:
        """Half of its segments' nodes is what a head touches, more or less."""
        nodes = sum(len(one.nodes) for one in self._segments[probes[0].first : probes[0].last + 1])
        most = max(1, 2 * LARGEST // max(nodes, 1))
        return [probes[start : start + most] for start in range(0, len(probes), most)]

    def _float_run(self, at_once: int | None) -> Kept:
        """What the segments read of the float model, and its answers."""
        needed = {*self._answers, *(name for one in self._segments for name in one.reads)}

        def run(feed: Feed) -> Values:
            values = dict(feed)
            for segment in self._segments:
                values |= _run(segment.session, values, {})
            return {name: values[name] for name in sorted(needed)}

        kept = Kept()
        for values in side_by_side(run, self._samples, at_once):
            kept.keep(values)
        return kept

    def _span(self, probes: list[_Probe], kept: Kept) -> list[tuple[int, Sums]]:
        graph, heads = self._heads(probes)
        session = self._session(graph) if graph.outputs else None
        behind = self._segments[probes[0].last + 1 :]
        sums = [[Agreement()] * len(self._answers) for _ in probes]
        for index in range(len(kept)):
            real = kept.at(index)
            made = {} if session is None else _run(session, real, {})
            found = [_answers_of(head, real, made, behind) for head in heads]
            for number, meant in enumerate(self._answers):
                answers = [each[number] for each in found]
                for total, one in zip(sums, agreements(real[meant], answers), strict=True):
                    total[number] += one
        return [(probe.number, tuple(each)) for probe, each in zip(probes, sums, strict=True)]

    def _heads(self, probes: list[_Probe]) -> tuple[Graph, list[_Head]]:
        """The session's graph, which gives what any of them changes."""
        first, last = probes[0].first, probes[0].last
        nodes = [node for one in self._segments[first : last + 1] for node in one.nodes]
        graph = part(self._real, nodes or self._segments[0].nodes, [])
        own = {str(node.name): node for node in graph.nodes()}
        heads = []
        for probe in probes:
            touched = _touched(nodes, probe.seeds)
            copied = [own[str(node.name)] for node in touched]
            names = fork(graph, copied) if len(probes) > 1 else Fork.of(copied)
            heads.append(self._head(graph, probe, touched, names))
        graph.expose(dict.fromkeys(name for head in heads for name in head.changed.values()))
        graph.drop_unused()
        return graph, heads

    def _head(self, graph: Graph, probe: _Probe, touched: list[Node], names: Fork) -> _Head:
        inside, answers = set(touched), list(self._answers)
        made = [v for node in touched for v in node.outputs if _leaves(v, inside)]
        changed = {str(value.name): names.values[str(value.name)] for value in made}
        places = [_renamed(one, names) for one in probe.places]
        reals = quantize(graph, without_weights(graph, places))
        for one in probe.places:
            if one.tensor in probe.replaced and one.tensor in changed:
                changed[one.tensor] = reals[one.name]
            if one.tensor not in probe.replaced:
                answers = [
                    reals[one.name] if n in one.answers else a for n, a in enumerate(answers)
                ]
        extra = {name: name for name in answers if name not in self._answers}
        return _Head(changed | extra, tuple(answers))


def _run(session: FloatSession, real: Values, changed: Values) -> dict[str, np.ndarray]:
    feeds = {n: changed[n] if n in changed else real[n] for n in session.input_names}
    return dict(zip(session.output_names, session.run(None, feeds), strict=True))


def _answers_of(
    head: _Head, real: Values, made: Values, behind: Sequence[_Segment]
) -> list[np.ndarray]:
    changed = {name: made[own] for name, own in head.changed.items()}
    for segment in behind:
        if not changed.keys().isdisjoint(segment.reads):
            changed |= _run(segment.session, real, changed)
    return [changed[name] if name in changed else real[name] for name in head.answers]


def _segments(nodes: int, probes: int, samples: int) -> int:
    """How many cost least."""
    crossing = 4 * SESSION + samples * probes * BORDER
    return max(FEWEST, round(math.sqrt(probes * nodes / crossing)))


def _slices(nodes: Sequence[Node], count: int) -> list[list[Node]]:
    """The nodes in order, in parts; a clamp stays with its node."""
    clamps = {absorbed(node) for node in nodes}
    starts = [index for index, node in enumerate(nodes) if node not in clamps]
    ends = [starts[len(starts) * part // count] for part in range(count)] + [len(nodes)]
    return [list(nodes[start:end]) for start, end in pairwise(ends) if start < end]


def _replaced(
    places: Places, values: Mapping[str, Value], answers: Sequence[Value]
) -> frozenset[str]:
    """The tensors of which everybody reads what these places make."""
    partly = {one.tensor for one in places if not _is_for_all(one, values[one.tensor], answers)}
    return frozenset({one.tensor for one in places} - partly)


def _is_for_all(one: CalibrationNode, value: Value, answers: Sequence[Value]) -> bool:
    """Whether a node makes it, and everybody reads it quantized."""
    uses = {(str(use.node.name), use.idx) for use in value.uses()}
    given = {index for index, answer in enumerate(answers) if answer is value}
    return producer(value) is not None and uses == {*one.reads} and given == {*one.answers}


def _seeds(
    places: Places, values: Mapping[str, Value], replaced: Collection[str]
) -> frozenset[str]:
    """The nodes that change first: those that make what is replaced, or an answer; those that read
    anything else."""
    made = [one for one in places if one.answers or one.tensor in replaced]
    makers = (producer(values[one.tensor]) for one in made)
    read = {name for one in places if one.tensor not in replaced for name, _ in one.reads}
    return frozenset(read | {str(maker.name) for maker in makers if maker is not None})


def _renamed(one: CalibrationNode, names: Fork) -> CalibrationNode:
    """The same place at the copies."""
    read = tuple((names.nodes[name], index) for name, index in one.reads if name in names.nodes)
    return one._replace(tensor=names.values.get(one.tensor, one.tensor), reads=read)


def _touched(nodes: Sequence[Node], seeds: Collection[str]) -> list[Node]:
    """Of these nodes, in order, the seeds and all behind them."""
    changed: set[Value] = set()
    found = []
    for node in nodes:
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
