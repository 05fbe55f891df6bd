"""Observe: what each tensor does over all samples, in one pass and bounded memory.

onnxruntime runs the float graph and writes every watched tensor into one buffer, early and in
blocks of channels where there is much to write (engine.ort.hasty_session). Values are counted as
they come (calibration.tally); what follows from a watched tensor is not watched
(calibration.derived). Memory is O(tensors * bins) and one buffer per thread, and neither the order
of the samples nor the number of threads changes a byte.

A model whose watched tensors take more than CEILING is watched group by group, in as many passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import watching_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import shared_out, threads
from pipeline.errors import StageError
from pipeline.graph import Graph
from pipeline.progress import track
from pipeline.quant.calibration.derived import derivations, with_derived
from pipeline.quant.calibration.layout import Layout
from pipeline.quant.calibration.statistics import Statistics
from pipeline.quant.calibration.tally import Tally
from pipeline.quant.calibration.views import View, handed_out, laid_out, view_of
from pipeline.quant.precision.placement import observed

CEILING = 1 << 28  # bytes of watched tensors: of one run, and so of all threads at once


class Series(Protocol):
    """Samples that can be gone through again."""

    def __iter__(self) -> Iterator[Feeds]: ...

    def __len__(self) -> int: ...


def observe(
    graph: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    *,
    first: int = 0,
    ceiling: int = CEILING,
) -> Statistics:
    """The statistics of every observed tensor of `graph` over `feeds`, samples from number
    `first` on.

    Raises StageError when the model makes NaN or infinity, which no range can hold, or a tensor
    without a value, which has none.
    """
    names = observed(graph)
    derived = derivations(graph, names)
    values = graph.values()
    views = {name: view_of(values[name]) for name in names if name not in derived}
    for name, view in views.items():
        if not view.elements:
            shape = list(view.shape)
            hint = "cut it out of the model: nothing is computed with it"
            raise StageError(f"`{name}` holds no value, its shape is {shape}", hint=hint)
    found = Statistics({})
    for group in _groups(views, ceiling):
        part = _observed(graph, group, feeds, operators, first, ceiling)
        found = Statistics(
            {**found.tensors, **part.tensors},
            {**found.channels, **part.channels},
            {**found.samples, **part.samples},
            part.numbers,
        )
    return with_derived(found, derived, names) if found.numbers else found


def _groups(views: Mapping[str, View], ceiling: int) -> Iterator[dict[str, View]]:
    """The tensors in order, as many at once as the ceiling allows, at least one."""
    group: dict[str, View] = {}
    held = 0
    for name, view in views.items():
        size = 4 * view.elements
        if group and held + size > ceiling:
            yield group
            group, held = {}, 0
        group[name] = view
        held += size
    if group:
        yield group


def _observed(
    graph: Graph,
    views: Mapping[str, View],
    feeds: Series,
    operators: Operators,
    first: int,
    ceiling: int,
) -> Statistics:
    elements = sum(view.elements for view in views.values())
    at_once = max(1, min(threads(), ceiling // (4 * elements)))
    handed = list(handed_out(graph, views))
    session, blocks = watching_session(graph, handed, operators, elements * len(feeds))
    layout = Layout(laid_out(views, handed, blocks))
    tally = Tally(layout)

    def counting() -> Callable[[tuple[int, Feeds]], None]:
        write, reach = session.writer(layout.starts, layout.buffer()), tally.reach()
        return lambda numbered: tally.add(numbered[0], write(numbered[1]), reach)

    numbered = enumerate(track(feeds, "statistics", len(feeds)), first)
    shared_out([counting() for _ in range(at_once)], numbered)
    return tally.statistics()
