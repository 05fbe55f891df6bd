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
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.data.samples import Feed, Samples
from pipeline.debug.calibration_nodes import calibration_nodes
from pipeline.debug.heads import Head, heads
from pipeline.debug.kept import Kept
from pipeline.debug.network import Change, Network, Places
from pipeline.engine.fusion import CLAMPS
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.ort import OrtSession
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Piece, is_foreign
from pipeline.kernels.measure import Agreement, agreements

SESSION, BORDER = 10.0, 0.2
FEWEST, LARGEST = 4, 400

Sums = tuple[Agreement, ...]  # by output, over all samples
Values = Mapping[str, np.ndarray]


class _Segment(NamedTuple):
    """Its pieces are those from `start` to before `stop`."""

    start: int
    stop: int
    session: FloatSession


class _Probe(NamedTuple):
    """Its seeds lie in segments from `first` to `last`."""

    number: int
    change: Change
    first: int
    last: int


class Probing:
    """Probes of one calibrated graph, over all samples. Raises GraphError."""

    def __init__(
        self,
        calibrated: Graph,
        probes: Sequence[Places],
        samples: Samples,
        operators: Operators = NO_OPERATORS,
        nodes: Places | None = None,
    ) -> None:
        """`nodes` are all that the graph has, where the caller knows them already."""
        self._operators = operators
        self._samples = samples
        self._is_mixed = any(is_foreign(node) for node in calibrated.model.graph.all_nodes())
        known = calibration_nodes(calibrated) if nodes is None else nodes
        self._network = Network(calibrated, known)
        pieces = self._network.floats
        bounds = _bounds(pieces, _segments(len(pieces), len(probes), len(samples)))
        self._segments = [self._segment(start, stop) for start, stop in bounds]
        self._place = [at for at, one in enumerate(bounds) for _ in range(*one)]
        self._probes = [self._probe(number, places) for number, places in enumerate(probes)]

    def sums(self, at_once: int | None = None) -> Iterator[tuple[int, Sums]]:
        """The number of each probe and its sums, those of a span together, `at_once` spans at a
        time, by default one per core."""
        kept = self._float_run(at_once)
        for found in side_by_side(lambda span: self._span(span, kept), self._spans(), at_once):
            yield from found

    def _session(self, model: bytes) -> FloatSession:
        if not self._is_mixed:
            return OrtSession(model, fusion="floats")
        return float_session(Graph.from_bytes(model), self._operators, fusion="floats")

    def _segment(self, start: int, stop: int) -> _Segment:
        pieces, network = self._network.floats[start:stop], self._network
        made = [n for p in pieces for n in p.makes if network.is_read_after(n, stop)]
        return _Segment(start, stop, self._session(network.written.model(pieces, made)))

    def _probe(self, number: int, places: Places) -> _Probe:
        change = self._network.change(places)
        at = [self._place[seed] for seed in change.seeds]
        return _Probe(number, change, min(at, default=0), max(at, default=-1))

    def _spans(self) -> list[list[_Probe]]:
        """The probes of each session."""
        found: dict[tuple[int, int], list[_Probe]] = {}
        for probe in self._probes:
            found.setdefault((probe.first, probe.last), []).append(probe)
        return [some for key in sorted(found) for some in self._in_sessions(found[key])]

    def _in_sessions(self, probes: list[_Probe]) -> list[list[_Probe]]:
        """Half of its segments' nodes is what a head touches, more or less."""
        start, stop = self._extent(probes)
        most = max(1, 2 * LARGEST // max(stop - start, 1))
        return [probes[start : start + most] for start in range(0, len(probes), most)]

    def _extent(self, probes: list[_Probe]) -> tuple[int, int]:
        """The pieces of the segments where the seeds of these probes lie, which are the same."""
        within = self._segments[probes[0].first : probes[0].last + 1]
        return (within[0].start, within[-1].stop) if within else (0, 0)

    def _float_run(self, at_once: int | None) -> Kept:
        """What the segments read of the float model, and its answers."""
        read = (name for one in self._segments for name in one.session.input_names)
        needed = sorted({*self._network.answers, *read})

        def run(feed: Feed) -> Values:
            values = {**self._constant_answers(), **feed}
            for segment in self._segments:
                values |= _run(segment.session, values, {})
            return {name: values[name] for name in needed}

        kept = Kept()
        for values in side_by_side(run, self._samples, at_once):
            kept.keep(values)
        return kept

    def _constant_answers(self) -> dict[str, np.ndarray]:
        found = {name: self._network.written.array(name) for name in self._network.answers}
        return {name: array for name, array in found.items() if array is not None}

    def _span(self, probes: list[_Probe], kept: Kept) -> list[tuple[int, Sums]]:
        made = heads(self._network, [one.change for one in probes], *self._extent(probes))
        session = None if made.model is None else self._session(made.model)
        behind = self._segments[probes[0].last + 1 :]
        answers = self._network.answers
        sums = [[Agreement()] * len(answers) for _ in probes]
        for index in range(len(kept)):
            real = kept.at(index)
            values = {} if session is None else _run(session, real, {})
            found = [_answers_of(head, real, values, behind) for head in made.each]
            for number, meant in enumerate(answers):
                compared = agreements(real[meant], [each[number] for each in found])
                for total, one in zip(sums, compared, strict=True):
                    total[number] += one
        return [(probe.number, tuple(each)) for probe, each in zip(probes, sums, strict=True)]


def _run(session: FloatSession, real: Values, changed: Values) -> dict[str, np.ndarray]:
    feeds = {n: changed[n] if n in changed else real[n] for n in session.input_names}
    return dict(zip(session.output_names, session.run(None, feeds), strict=True))


def _answers_of(
    head: Head, real: Values, made: Values, behind: Sequence[_Segment]
) -> list[np.ndarray]:
    changed = {name: made[own] for name, own in head.changed.items()}
    for segment in behind:
        if not changed.keys().isdisjoint(segment.session.input_names):
            changed |= _run(segment.session, real, changed)
    return [changed[name] if name in changed else real[name] for name in head.answers]


def _segments(nodes: int, probes: int, samples: int) -> int:
    """How many cost least."""
    crossing = 4 * SESSION + samples * probes * BORDER
    return max(FEWEST, round(math.sqrt(probes * nodes / crossing)))


def _bounds(pieces: Sequence[Piece], count: int) -> list[tuple[int, int]]:
    """Where parts of the pieces start and stop; a clamp stays with its node."""
    starts = [number for number, piece in enumerate(pieces) if piece.op_type not in CLAMPS]
    ends = [starts[len(starts) * part // count] for part in range(count)] if starts else []
    return [(a, b) for a, b in pairwise([*ends, len(pieces)]) if a < b]
