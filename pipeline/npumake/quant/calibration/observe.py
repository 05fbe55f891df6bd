"""Observe: activation statistics of all tensors over all samples, in one pass and bounded memory.

onnxruntime runs the float graph and writes the watched tensors into a buffer, segment by segment
where there is much to write (engine.observed_session). The values of a segment are counted before
the next one overwrites them. Derived tensors are not watched (calibration.derived_statistics).
Memory is O(tensors * bins) and one buffer per thread. Neither the order of the samples nor the
number of threads changes a byte.

A model whose watched tensors exceed MAX_WATCHED_BYTES is watched group by group, in several passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.observed_session import watching
from npumake.engine.ort import Feeds
from npumake.engine.parallel import shared_out, threads
from npumake.errors import StageError
from npumake.graph import ExtraOutput, Graph
from npumake.progress import track
from npumake.quant.calibration.buffer_layout import Layout, room_for
from npumake.quant.calibration.derived_statistics import derivations, with_derived
from npumake.quant.calibration.histogram_observer import HistogramObserver
from npumake.quant.calibration.softmax_inputs import (
    MAX_WATCHED_VALUE,
    ProbedGraph,
    with_peak_probes,
)
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.calibration.subsampling import TensorSlices, sampled_outputs, slices_of
from npumake.quant.precision.placement import observed_tensors

Names = Mapping[str, Sequence[str]]  # names of a tensor's slices, by tensor

MAX_WATCHED_BYTES = 1 << 28  # over all threads


class Series(Protocol):
    """Samples that can be iterated more than once."""

    def __iter__(self) -> Iterator[Feeds]: ...

    def __len__(self) -> int: ...


def observe(
    graph: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    *,
    first: int = 0,
    ceiling: int = MAX_WATCHED_BYTES,
) -> Statistics:
    """The statistics of every observed tensor of `graph` over `feeds`; sample numbers start at
    `first`.

    Raises StageError for NaN or infinity in a tensor, and for a tensor without elements.
    """
    names = observed_tensors(graph)
    derived = derivations(graph, names)
    probes = with_peak_probes(graph)
    values = probes.graph.values()
    watched = (*(name for name in names if name not in derived), *probes.peaks.values())
    views = {name: slices_of(values[name]) for name in watched}
    for name, view in views.items():
        if not view.elements:
            shape = list(view.shape)
            hint = "remove it from the model: it has no elements"
            raise StageError(f"`{name}` holds no value, its shape is {shape}", hint=hint)
    statistics = Statistics({})
    for group in _groups(views, ceiling):
        for part in _observed(probes, group, feeds, operators, first, ceiling):
            statistics = Statistics(
                {**statistics.tensors, **part.tensors},
                {**statistics.channels, **part.channels},
                {**statistics.samples, **part.samples},
                part.numbers,
            )
    if not statistics.numbers:
        return statistics
    return with_derived(_with_peaks(statistics, probes.peaks), derived, names)


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


def _groups(views: Mapping[str, TensorSlices], ceiling: int) -> Iterator[dict[str, TensorSlices]]:
    """The tensors in order, in groups within the ceiling of at least one tensor."""
    group: dict[str, TensorSlices] = {}
    total = 0
    for name, view in views.items():
        size = 4 * view.elements
        if group and total + size > ceiling:
            yield group
            group, total = {}, 0
        group[name] = view
        total += size
    if group:
        yield group


def _observed(
    probes: ProbedGraph,
    views: Mapping[str, TensorSlices],
    feeds: Series,
    operators: Operators,
    first: int,
    ceiling: int,
) -> Iterator[Statistics]:
    elements = sum(view.elements for view in views.values())
    at_once = max(1, min(threads(), ceiling // (4 * elements)))
    graph = probes.graph
    pieces = {name: _outputs_for(probes, name, view) for name, view in views.items()}
    watched = watching(graph, [*pieces.values()], operators, elements * len(feeds))
    names = {
        name: [str(piece) for piece in tensor_pieces] for name, tensor_pieces in pieces.items()
    }
    layouts = [_layout(views, names, segment, watched.blocks) for segment in watched.segments]
    starts = {name: at for layout in layouts for name, at in _starts(layout, names)}
    max_elements = max(layout.elements for layout in layouts)
    tallies = [HistogramObserver(layout, at_once) for layout in layouts]

    def counting() -> Callable[[tuple[int, Feeds]], None]:
        write, shares = (
            watched.writer(starts, room_for(max_elements)),
            [tally.share() for tally in tallies],
        )

        def count(numbered: tuple[int, Feeds]) -> None:
            number, feeds = numbered
            for tally, share, written in zip(tallies, shares, write(feeds), strict=True):
                tally.add(number, written, share)

        return count

    numbered = enumerate(track(feeds, "statistics", len(feeds)), first)
    shared_out([counting() for _ in range(at_once)], numbered)
    return (tally.statistics() for tally in tallies)


def _outputs_for(probes: ProbedGraph, name: str, view: TensorSlices) -> list[str | ExtraOutput]:
    if len(view.pieces) == 1 and name in probes.bounded:
        return [probes.bounded[name]]
    return sampled_outputs(probes.graph, name, view)


def _layout(
    views: Mapping[str, TensorSlices],
    names: Names,
    segment: Collection[str],
    blocks: Mapping[str, int],
) -> Layout:
    """The layout of the tensors whose slices one segment produces."""
    own = {name: view for name, view in views.items() if names[name][-1] in segment}
    return Layout({n: replace(view, block=blocks.get(names[n][-1], 1)) for n, view in own.items()})


def _starts(layout: Layout, names: Names) -> Iterator[tuple[str, int]]:
    """The start of each slice, by its name."""
    pieces = (piece for name in layout.views for piece in names[name])
    return zip(pieces, layout.starts, strict=True)
