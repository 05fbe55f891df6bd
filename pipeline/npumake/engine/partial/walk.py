"""Walk: runs graphs of the same layers over the same samples, step by step (partial.cut).

Between two steps the caller may edit the graphs. Every node runs once per sample.

The budget limits how many samples are on the way, MAX_SAMPLES at most, evenly spread. Where a model
carries less, behind its large first layers, more samples join and catch up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from npumake.custom.operators import Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import LayerStep
from npumake.engine.partial.opened import of_nodes
from npumake.graph import Graph, Node, Value

BUDGET_BYTES = 64 << 20  # of carried tensors
MAX_SAMPLES = 128  # bounds the time for large sets

SampleTensors = dict[str, np.ndarray]  # carried tensors of one sample, by name


class Series(Protocol):
    """Samples that can be iterated more than once."""

    def __iter__(self) -> Iterator[Feeds]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class IndexedSeries(Series, Protocol):
    """Samples that can be read one by one."""

    @property
    def read(self) -> Callable[[int], Feeds]: ...


class LayerRoute(NamedTuple):
    """A graph, and its steps."""

    graph: Graph
    cut: list[LayerStep]


class LayerWalk:
    """`samples[k][i]` has the carried tensors of route k and sample `numbers[i]`."""

    def __init__(
        self, routes: Sequence[LayerRoute], feeds: Series, operators: Operators, budget: int
    ) -> None:
        self._routes, self._feeds, self._operators = routes, feeds, operators
        together = zip(*(route.cut for route in routes), strict=True)
        group_bytes = [sum(step.bytes for step in steps) for steps in together]
        self._rooms = [
            max(1, budget // max(1, *group_bytes[at:])) for at in range(len(group_bytes))
        ]
        self._order = sorted(range(len(feeds)), key=_spread)[:MAX_SAMPLES]
        self.numbers: list[int] = []
        self.samples: list[list[SampleTensors]] = [[] for _ in routes]

    @property
    def chosen(self) -> list[int]:
        """The numbers of all samples that may ever be on the way."""
        return sorted(self._order)

    def feeds(self, numbers: Collection[int]) -> Iterator[SampleTensors]:
        """The feeds of these samples, in order."""
        if isinstance(self._feeds, IndexedSeries):  # reads only these
            return (dict(self._feeds.read(number)) for number in sorted(numbers))
        chosen = set(numbers)
        return (dict(feed) for number, feed in enumerate(self._feeds) if number in chosen)

    def step(self, at: int) -> None:
        """Runs step `at` for as many samples as there is room for."""
        self.advance(at)
        self.join(at)

    def advance(self, at: int, also: Sequence[Value] = ()) -> None:
        """Runs step `at` for the samples on the way; carries its tensors and `also` until others
        join."""
        if at == 0:
            self.numbers = sorted(self._order[: self._rooms[0]])
            self.samples = [[{} for _ in self.numbers] for _ in self._routes]
        for tensors, route in zip(self.samples, self._routes, strict=True):
            step = route.cut[at]
            samples = self.feeds(self.numbers) if at == 0 else tensors
            outputs = [*dict.fromkeys([*step.carried, *also])]
            for index, sample in enumerate(self._run(route, step.nodes, outputs, samples)):
                tensors[index] = _own(sample)

    def join(self, at: int) -> None:
        """Carries only the tensors of step `at`, and adds samples while there is room."""
        for tensors, route in zip(self.samples, self._routes, strict=True):
            names = [str(value.name) for value in route.cut[at].carried]
            tensors[:] = [{name: values[name] for name in names} for values in tensors]
        room, stored = min(self._rooms[at], len(self._order)), len(self.numbers)
        # A pass over the samples is worth it if it adds all of them, or doubles their number.
        if room == len(self._order) or room >= 2 * stored:
            self._begin(at, sorted(self._order[stored:room]))

    def _begin(self, at: int, numbers: Sequence[int]) -> None:
        """Adds new samples, run up to the end of step `at`."""
        if not numbers or not self._routes[0].cut[at].carried:
            return
        for tensors, route in zip(self.samples, self._routes, strict=True):
            nodes = list(dict.fromkeys(node for step in route.cut[: at + 1] for node in step.nodes))
            tensors += map(
                _own, self._run(route, nodes, route.cut[at].carried, self.feeds(numbers))
            )
        self.numbers += numbers

    def _run(
        self,
        route: LayerRoute,
        nodes: list[Node],
        outputs: list[Value],
        samples: Iterable[SampleTensors],
    ) -> Iterator[SampleTensors]:
        """Runs these nodes for each sample; yields `outputs`, computed or carried, one sample at a
        time."""
        inside = {value for node in nodes for value in node.outputs}
        computed = [value for value in outputs if value in inside]
        passed = [str(value.name) for value in outputs if value not in inside]
        part = of_nodes(route.graph, nodes, computed, self._operators)

        def run(values: SampleTensors) -> SampleTensors:
            return {**{name: values[name] for name in passed}, **part.run(values)}

        return side_by_side(run, samples)


def _own(sample: SampleTensors) -> SampleTensors:
    """Copies in the memory of this thread: each worker thread's heap is fragmented, and would hold
    200 MB for 64 MB."""
    return {name: array.copy() for name, array in sample.items()}


def _spread(number: int) -> int:
    """The sort key of evenly spread numbers: the bits in reverse (van der Corput sequence)."""
    return int(f"{number:032b}"[::-1], 2)
