"""Observe: activation statistics of all tensors over all samples, in one pass and bounded memory.

onnxruntime runs the float graph and writes the observed tensors of a sample into a buffer. They are
counted before the next sample overwrites them. Derived tensors are not observed
(calibration.derived_statistics). Memory is O(tensors * bins) and one buffer per thread. Neither the
order of the samples nor the number of threads changes a byte.

A model whose tensors exceed MAX_OBSERVED_BYTES is observed group by group, in several passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.observed_session import ObservedSession
from npumake.engine.ort import Feeds
from npumake.engine.parallel import shared_out, threads
from npumake.engine.partial.walk import Series
from npumake.errors import StageError
from npumake.graph import Graph
from npumake.progress import track
from npumake.quant.calibration.buffer_layout import (
    BufferLayout,
    ObservedTensor,
    observed_tensor,
)
from npumake.quant.calibration.derived_statistics import derivations, with_derived
from npumake.quant.calibration.histogram_observer import HistogramObserver, ThreadObserver
from npumake.quant.calibration.minmax_observer import MinMaxObserver
from npumake.quant.calibration.softmax_inputs import MAX_WATCHED_VALUE, with_peak_probes
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.precision.placement import observed_tensors

MAX_OBSERVED_BYTES = 1 << 28  # over all threads


def observe(
    graph: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    *,
    first: int = 0,
    ceiling: int = MAX_OBSERVED_BYTES,
) -> Statistics:
    """The statistics of every observed tensor of `graph` over `feeds`; sample numbers start at
    `first`.

    Raises StageError for NaN or infinity in a tensor, and for a tensor without elements.
    """
    return complete(graph, observe_mergeable(graph, feeds, operators, first=first, ceiling=ceiling))


def observe_mergeable(
    graph: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    *,
    first: int = 0,
    ceiling: int = MAX_OBSERVED_BYTES,
) -> Statistics:
    """The statistics of what onnxruntime computes, without those that follow from them: those of
    shards merge exactly. Raises StageError as `observe`."""
    names = observed_tensors(graph)
    derived = derivations(graph, names)
    probes = with_peak_probes(graph)
    values = probes.graph.values()
    tensors = [
        observed_tensor(values[name], probes.bounded.get(name, name))
        for name in (*(n for n in names if n not in derived), *probes.peaks.values())
    ]
    for tensor in tensors:
        if not tensor.elements:
            hint = "remove it from the model: it has no elements"
            message = f"`{tensor.name}` holds no value, its shape is {list(tensor.shape)}"
            raise StageError(message, hint=hint)
    parts = [
        _observed(probes.graph, BufferLayout(group), feeds, operators, first, ceiling)
        for group in _groups(tensors, ceiling)
    ]
    return Statistics(
        {name: entry for part in parts for name, entry in part.tensors.items()},
        {name: entry for part in parts for name, entry in part.channels.items()},
        {name: entry for part in parts for name, entry in part.samples.items()},
        parts[0].numbers if parts else (),
    )


def complete(graph: Graph, mergeable: Statistics) -> Statistics:
    """The statistics of every observed tensor, from those of `observe_mergeable` over all
    samples."""
    if not mergeable.numbers:
        return mergeable
    names = observed_tensors(graph)
    peaks = with_peak_probes(graph).peaks
    return with_derived(_with_peaks(mergeable, peaks), derivations(graph, names), names)


def _with_peaks(statistics: Statistics, probes: Mapping[str, str]) -> Statistics:
    """Turns the lows of the probes into the peaks of their tensors."""
    lows = {name: statistics.tensors[probe].low for name, probe in probes.items()}
    names = [name for name in statistics.tensors if name not in set(probes.values())]
    return Statistics(
        {name: statistics.tensors[name] for name in names},
        {name: statistics.channels[name] for name in names if name in statistics.channels},
        {name: statistics.samples[name] for name in names},
        statistics.numbers,
        {name: low for name, low in lows.items() if low < MAX_WATCHED_VALUE},
    )


def _groups(tensors: Sequence[ObservedTensor], ceiling: int) -> Iterator[list[ObservedTensor]]:
    """The tensors in order, in groups within the ceiling of at least one tensor."""
    group: list[ObservedTensor] = []
    total = 0
    for tensor in tensors:
        size = 4 * tensor.elements
        if group and total + size > ceiling:
            yield group
            group, total = [], 0
        group.append(tensor)
        total += size
    if group:
        yield group


def _observed(
    graph: Graph,
    layout: BufferLayout,
    feeds: Series,
    operators: Operators,
    first: int,
    ceiling: int,
) -> Statistics:
    elements = layout.starts[-1]
    at_once = max(1, min(threads(), ceiling // (4 * elements)))
    session = ObservedSession(graph, [tensor.output for tensor in layout.tensors], operators)
    histograms = HistogramObserver(layout, at_once)
    observers = [ThreadObserver(histograms) for _ in range(at_once)]

    def observing(observer: ThreadObserver) -> Callable[[tuple[int, Feeds]], None]:
        buffer = np.empty(elements, np.float32)
        write = session.writer(layout.views(buffer))

        def look(numbered: tuple[int, Feeds]) -> None:
            number, feeds = numbered
            write(feeds)
            observer.add(number, buffer)

        return look

    numbered = enumerate(track(feeds, "statistics", len(feeds)), first)
    shared_out([observing(observer) for observer in observers], numbered)
    for observer in observers:
        observer.count()
    extremes, *others = (observer.extremes for observer in observers)
    for other in others:
        extremes.merge(other)
    return _statistics(layout, extremes, histograms)


def _statistics(
    layout: BufferLayout, extremes: MinMaxObserver, histograms: HistogramObserver
) -> Statistics:
    if not extremes.samples:
        return Statistics({})
    low, high = extremes.by_sample()
    samples = {t.name: Extremes(low[:, n], high[:, n]) for n, t in enumerate(layout.tensors)}
    numbers = tuple(sorted(extremes.samples))
    return Statistics(histograms.histograms(extremes), extremes.by_channel(), samples, numbers)
