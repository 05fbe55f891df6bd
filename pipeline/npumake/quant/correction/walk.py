"""Walk: graphs of the same layers over the same samples, step after step (recovery.steps).

As many samples are on the way as what they carry fits into a budget, MOST at most, evenly spread.
Where a model carries less, behind its large first layers, others join them, through all that is
behind. So every node still runs once per sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from npumake.custom.operators import Operators
from npumake.data.samples import Samples
from npumake.graph import Graph, Node, Value
from npumake.quant.calibration.observe import Series
from npumake.quant.correction.steps import MOST, LayerStep, SampleTensors, run


class LayerRoute(NamedTuple):
    """A graph, and the steps it is walked in."""

    graph: Graph
    cut: list[LayerStep]


class LayerWalk:
    """`samples[k][i]` is what route k carries of sample `numbers[i]`."""

    def __init__(
        self, routes: Sequence[LayerRoute], feeds: Series, operators: Operators, budget: int
    ) -> None:
        self._routes, self._feeds, self._operators = routes, feeds, operators
        together = zip(*(route.cut for route in routes), strict=True)
        each = [sum(step.bytes for step in steps) for steps in together]
        self._rooms = [max(1, budget // max(1, *each[at:])) for at in range(len(each))]
        self._order = sorted(range(len(feeds)), key=_spread)[:MOST]
        self.numbers: list[int] = []
        self.samples: list[list[SampleTensors]] = [[] for _ in routes]

    @property
    def chosen(self) -> list[int]:
        """The numbers of all samples that may ever be on the way."""
        return sorted(self._order)

    def feeds(self, numbers: Collection[int]) -> Iterator[SampleTensors]:
        """What samples of these numbers are fed, in the order of all."""
        if isinstance(self._feeds, Samples):  # of a thousand none but these are read
            return (dict(self._feeds.read(number)) for number in sorted(numbers))
        chosen = set(numbers)
        return (dict(feed) for number, feed in enumerate(self._feeds) if number in chosen)

    def step(self, at: int) -> None:
        """Step `at`, behind that before it, for as many samples as there is room for."""
        self.advance(at)
        self.join(at)

    def advance(self, at: int, also: Sequence[Value] = ()) -> None:
        """Run step `at` for the samples on the way, and hold what it carries, and what of it is
        `also` asked of a walk of one route, until others join."""
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
        """Hold what step `at` carries alone, of more samples where there is room for them."""
        for tensors, route in zip(self.samples, self._routes, strict=True):
            names = [str(value.name) for value in route.cut[at].carried]
            tensors[:] = [{name: values[name] for name in names} for values in tensors]
        room, there = min(self._rooms[at], len(self._order)), len(self.numbers)
        # A pass over the samples is worth it where it brings all, or as many again.
        if room == len(self._order) or room >= 2 * there:
            self._begin(at, sorted(self._order[there:room]))

    def _begin(self, at: int, numbers: Sequence[int]) -> None:
        """Samples that have not been on the way, up to the end of step `at`."""
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
        return run(route.graph, nodes, outputs, samples, self._operators)


def _own(sample: SampleTensors) -> SampleTensors:
    """Copies in the memory of this thread: that of those who run the samples, a heap for each
    thread, is not given back in one piece, and of 64 MB becomes 200."""
    return {name: array.copy() for name, array in sample.items()}


def _spread(number: int) -> int:
    """The first numbers in this order are evenly spread over all: its bits, read backwards (the
    sequence of van der Corput)."""
    return int(f"{number:032b}"[::-1], 2)
