"""Probing: the outputs of a float model with a few tensors quantized, for many such sets.

    segment    consecutive float nodes: one session for all probes
    head       copies of the nodes that a probe changes, within the segments of its quantized
               tensors
    span       the heads in the same segments, in one session

The float model runs once per sample, segment by segment; tensors across borders go to disk. A span
computes what each of its probes changes at the borders behind it; a probe then runs only segments
that read a changed tensor. Nothing before a probe runs again, and no probe needs a session of its
own. Threads split a span's samples into shares.

With n nodes, p probes, m samples and s segments, heads have p * n / 2s nodes, there are 2s
sessions, and m * p * s / 2 borders are crossed. The cost is least at

    s = sqrt(p * n / (4 * SESSION + m * p * BORDER))

where a session costs as much as SESSION nodes, and a border as much as BORDER nodes. Borders are
placed where the fewest values cross, because onnxruntime copies each crossing tensor. Heads of a
long segment fill several sessions of about MAX_HEAD_NODES nodes, which bounds the memory and the
work lost by an interruption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Feed, Samples
from npumake.debug.calibration_nodes import calibration_nodes
from npumake.debug.heads import Head, heads
from npumake.debug.network import PairChange, Places, SwitchedNetwork
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import even_segments
from npumake.engine.partial.disk_buffer import DiskBuffer
from npumake.engine.partial.opened import of_serialized
from npumake.engine.partial.part import Part, Values, rerun, run_in_order
from npumake.graph import Graph
from npumake.kernels.measure import BLOCK, Agreement, agreements

SESSION, BORDER = 10.0, 0.2
MAX_HEAD_NODES = 400
MIN_SHARES, MAX_SHARES = 8, 32  # many small shares, so that threads end together and stop soon
MAX_SMALL_SHARE = 4  # samples per share, if there are enough of them

Sums = tuple[Agreement, ...]  # by output, over all samples
SampleOutputs = list[list[np.ndarray]]  # by output: the float model's, then each probe's


class _Probe(NamedTuple):
    """A probe whose seeds are in the segments `first`..`last`."""

    number: int
    change: PairChange
    first: int
    last: int


class _Span(NamedTuple):
    """The part of the heads, and the segments behind them."""

    part: Part
    heads: tuple[Head, ...]
    behind: Sequence[Part]

    def outputs(self, names: Sequence[str], buffered: Values) -> SampleOutputs:
        """The outputs for one sample; `names` are theirs in the float model."""
        outputs = self.part.run(buffered)
        real = [outputs[name] if name in outputs else buffered[name] for name in names]
        rows = [real]
        before: Values = {}
        behind: Values = {}
        for head in self.heads:
            changed = {name: outputs[own] for name, own in head.changed.items()}
            # A pool on its input's grid gives the same result as its producer's probe.
            if not _is_same(changed, before):
                before, behind = changed, rerun(self.behind, changed, buffered)
            column = zip(head.outputs, real, strict=True)
            rows.append([behind.get(name, meant) for name, meant in column])
        return [list(column) for column in zip(*rows, strict=True)]


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
        """`nodes` are the graph's calibration nodes, if the caller has them."""
        self._operators = operators
        self._samples = samples
        calibration = calibration_nodes(calibrated) if nodes is None else nodes
        self._network = SwitchedNetwork(calibrated, calibration)
        pieces = self._network.floats
        count = _segments(len(pieces), len(probes), len(samples))
        bounds = even_segments(pieces, self._network.crossing(), count)
        self._bounds, self._is_one = bounds, len(bounds) == 1
        self._place = [at for at, bound in enumerate(bounds) for _ in range(*bound)]
        self._probes = [self._probe(number, places) for number, places in enumerate(probes)]

    def sums(self, at_once: int | None = None) -> Iterator[tuple[int, Sums]]:
        """Yields (probe number, sums per output), span by span; `at_once` shares of the samples run
        in parallel, by default one per core."""
        bounds = [] if self._is_one else self._bounds
        segments = [*side_by_side(lambda item: self._segment(*item), bounds, at_once)]
        buffer = self._float_run(segments, at_once)
        spans, share = self._spans(), _share(len(buffer))
        shares = [range(len(buffer))[at : at + share] for at in range(0, len(buffer), share)]
        setups = (_once(partial(self._span, probes, segments)) for probes in spans)
        work = ((setup, share) for setup in setups for share in shares)
        results = side_by_side(
            lambda item: self._compared(item[0](), item[1], buffer), work, at_once
        )
        for probes in spans:
            sums = [(Agreement(),) * len(self._network.outputs)] * len(probes)
            for _ in shares:
                sums = _added(sums, next(results))
            yield from zip((probe.number for probe in probes), sums, strict=True)

    def _segment(self, start: int, stop: int) -> Part:
        pieces, network = self._network.floats[start:stop], self._network
        outputs = [n for p in pieces for n in p.makes if network.is_read_after(n, stop)]
        return of_serialized(network.written, pieces, outputs, self._operators, "floats")

    def _probe(self, number: int, places: Places) -> _Probe:
        change = self._network.change(places)
        at = [self._place[seed] for seed in change.seeds]
        return _Probe(number, change, min(at, default=0), max(at, default=self._is_one - 1))

    def _spans(self) -> list[list[_Probe]]:
        """The probes grouped by session."""
        by_extent: dict[tuple[int, int], list[_Probe]] = {}
        for probe in self._probes:
            by_extent.setdefault((probe.first, probe.last), []).append(probe)
        return [
            outputs for key in sorted(by_extent) for outputs in self._in_sessions(by_extent[key])
        ]

    def _in_sessions(self, probes: list[_Probe]) -> list[list[_Probe]]:
        """The probes of one extent, split into sessions. A head has about half of the extent's
        nodes."""
        start, stop = self._extent(probes)
        max_heads = max(1, 2 * MAX_HEAD_NODES // max(stop - start, 1))
        return [probes[start : start + max_heads] for start in range(0, len(probes), max_heads)]

    def _extent(self, probes: Sequence[_Probe]) -> tuple[int, int]:
        """The (start, stop) of the nodes in these probes' segments, which are the same for all."""
        within = self._bounds[probes[0].first : probes[0].last + 1]
        return (within[0][0], within[-1][1]) if within else (0, 0)

    def _float_run(self, segments: Sequence[Part], at_once: int | None) -> DiskBuffer:
        """The float model's tensors that segments read, and its outputs, for all samples."""
        read = (name for segment in segments for name in segment.reads)
        needed = {*self._network.outputs, *self._network.written.inputs, *read}

        def run(feed: Feed) -> Values:
            values = run_in_order(segments, {**self._constant_outputs(), **feed})
            return {name: values[name] for name in sorted(needed & values.keys())}

        buffer = DiskBuffer()
        for values in side_by_side(run, self._samples, at_once):
            buffer.keep(values)
        return buffer

    def _constant_outputs(self) -> dict[str, np.ndarray]:
        arrays = {name: self._network.written.array(name) for name in self._network.outputs}
        return {name: array for name, array in arrays.items() if array is not None}

    def _span(self, probes: Sequence[_Probe], segments: Sequence[Part]) -> _Span:
        network, changes = self._network, [probe.change for probe in probes]
        real = [n for n in network.outputs if self._is_one and n in network.makers]
        probe_heads = heads(network, changes, *self._extent(probes), real)
        part = of_serialized(
            network.written,
            probe_heads.pieces,
            probe_heads.outputs,
            self._operators,
            "floats",
            probe_heads.constants,
        )
        return _Span(part, probe_heads.heads, segments[probes[0].last + 1 :])

    def _compared(self, span: _Span, share: range, buffer: DiskBuffer) -> list[Sums]:
        """The sums of each probe over a share of the samples."""
        sample_outputs = (span.outputs(self._network.outputs, buffer.at(index)) for index in share)
        sums = [(Agreement(),) * len(self._network.outputs)] * len(span.heads)
        for block in _blocks(sample_outputs):
            by_output = [agreements(meant, others) for meant, *others in block]
            sums = _added(sums, zip(*by_output, strict=True))
        return sums


def _blocks(samples: Iterable[SampleOutputs]) -> Iterator[SampleOutputs]:
    """Join several samples' outputs until a summation block is full."""
    block: list[SampleOutputs] = []
    for outputs in samples:
        block.append(outputs)
        if sum(max(a.size for a, *_ in part) for part in block) >= BLOCK:
            yield _joined(block)
            block = []
    if block:
        yield _joined(block)


def _joined(sample_outputs: Sequence[SampleOutputs]) -> SampleOutputs:
    if len(sample_outputs) == 1:
        return sample_outputs[0]
    outputs = zip(*sample_outputs, strict=True)
    return [
        [np.concatenate([*map(np.ravel, parts)]) for parts in zip(*output, strict=True)]
        for output in outputs
    ]


def _share(samples: int) -> int:
    """The number of samples per share. It does not depend on the number of threads, because other
    shares would change the last bits of the sums."""
    return max(1, math.ceil(samples / MAX_SHARES), min(MAX_SMALL_SHARE, samples // MIN_SHARES))


def _once(make: Callable[[], _Span]) -> Callable[[], _Span]:
    """A thread-safe lazy value: computed once, by the first caller."""
    lock = Lock()
    spans: list[_Span] = []

    def span() -> _Span:
        with lock:
            if not spans:
                spans.append(make())
            return spans[0]

    return span


def _added(left: Iterable[Sums], right: Iterable[Sums]) -> list[Sums]:
    pairs = zip(left, right, strict=True)
    return [tuple(a + b for a, b in zip(*pair, strict=True)) for pair in pairs]


def _is_same(left: Values, right: Values) -> bool:
    return left.keys() == right.keys() and all(
        array.tobytes() == right[name].tobytes() for name, array in left.items()
    )


def _segments(nodes: int, probes: int, samples: int) -> int:
    """The number of segments with the least cost; see the module."""
    crossing = 4 * SESSION + samples * probes * BORDER
    return max(1, round(math.sqrt(probes * nodes / crossing)))
