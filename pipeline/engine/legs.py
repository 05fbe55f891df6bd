"""Legs: what a change of one tensor does to the answers, without running again what lies before.

    behind[t]   the nodes that depend on tensor t, a model of their own
    cut[t]      what they read of the others, t first among it: computed once, and kept

Tensors next to each other in the graph have much of their cuts in common. As many legs as have at
most BUDGET bytes of cuts between them are run together: the whole graph once for what they are
fed, then each leg by itself. So memory does not grow with the graph, and of n tensors a probe each
takes half the graph in the mean, not all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import Operators
from pipeline.engine.mixed import Values, float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Node, Value, is_given, part, reads, shape

BUDGET = 256 << 20
Change = Callable[[Graph, Value], object]  # edits a graph in place at this value of it
Answers = list[list[np.ndarray]]


class Leg(NamedTuple):
    """A tensor, the nodes behind it, in order, and what they are fed."""

    value: Value
    nodes: list[Node]
    cut: list[Value]


def legs(graph: Graph, names: Sequence[str]) -> list[Leg]:
    """One of each tensor by name that some node reads."""
    order = [(node, [v for v in reads(node) if not is_given(v)]) for node in graph.nodes()]
    values = graph.values()
    return [leg for name in names if (leg := _leg(values[name], order)).nodes]


def _leg(value: Value, order: Sequence[tuple[Node, list[Value]]]) -> Leg:
    reached = {value}
    nodes: list[Node] = []
    cut: dict[Value, None] = {value: None}
    for node, read in order:
        if not reached.isdisjoint(read):
            nodes.append(node)
            reached.update(node.outputs)
            cut |= {other: None for other in read if other not in reached}
    return Leg(value, nodes, list(cut))


def changed(
    graph: Graph,
    names: Sequence[str],
    change: Change,
    feeds: Sequence[Feeds],
    operators: Operators,
    budget: int = BUDGET,
) -> Iterator[tuple[str, Answers]]:
    """Each of these tensors by name that some node reads, with the answers of the graph to `feeds`
    where that one is changed."""
    for group in _together(legs(graph, names), len(feeds), budget):
        held = _held(graph, group, feeds, operators)
        for leg in group:
            yield str(leg.value.name), _answers(graph, leg, change, held, operators)


def _together(found: Sequence[Leg], samples: int, budget: int) -> Iterator[list[Leg]]:
    """Groups of legs, in order, whose cuts fit into the budget; one at least."""
    group: list[Leg] = []
    cuts: set[Value] = set()
    for leg in found:
        wider = cuts.union(leg.cut)
        if group and samples * sum(map(_size, wider)) > budget:
            yield group
            group, wider = [], set(leg.cut)
        group, cuts = [*group, leg], wider
    if group:
        yield group


def _size(value: Value) -> int:
    return 4 * math.prod(shape(value))


def _held(
    graph: Graph, group: Sequence[Leg], feeds: Sequence[Feeds], operators: Operators
) -> list[Values]:
    """Of each sample what the legs are fed, and the answers of the graph as it is."""
    watch = (*graph.outputs, *(value for leg in group for value in leg.cut))
    fed = {str(value.name) for value in graph.inputs}
    names = [name for name in dict.fromkeys(str(v.name) for v in watch) if name not in fed]
    watched = graph.copy()
    watched.expose(names)
    watched.drop_unused()
    session = float_session(watched, operators)

    def ran(feed: Feeds) -> Values:
        return {**feed, **dict(zip(names, session.run(names, feed), strict=True))}

    return list(side_by_side(ran, feeds))


def _answers(
    graph: Graph, leg: Leg, change: Change, held: Sequence[Values], operators: Operators
) -> Answers:
    inside = {value for node in leg.nodes for value in node.outputs}
    made = [value for value in graph.outputs if value in inside]
    model = part(graph, leg.nodes, made)
    change(model, model.values()[str(leg.value.name)])
    model.drop_unused()
    session = float_session(model, operators)
    names = [str(value.name) for value in made]
    fed = list(session.input_names)

    def ran(values: Values) -> list[np.ndarray]:
        new = dict(zip(names, session.run(names, {n: values[n] for n in fed}), strict=True))
        return [new.get(str(v.name), values[str(v.name)]) for v in graph.outputs]

    return list(side_by_side(ran, held))
