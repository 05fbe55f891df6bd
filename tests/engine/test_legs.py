"""A leg gives the answers that the whole graph gives, and runs only what lies behind its tensor."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.custom.operators import NO_OPERATORS
from pipeline.engine.legs import BUDGET, changed, legs
from pipeline.engine.ort import OrtSession
from pipeline.graph import Graph, Value, parse_text

RNG = np.random.default_rng(0)
FEEDS = [{"x": RNG.normal(size=(1, 4)).astype(np.float32)} for _ in range(3)]
# Two answers, one of which `b` does not reach; `a` is read behind `b` too.
MODEL = """m (float[1,4] x) => (float[1,4] y, float[1,4] z) <float[4] k = {1, 2, 3, 4}>
{ a = Mul(x, k)  b = Tanh(a)  c = Add(a, b)  y = Sigmoid(c)  z = Neg(a) }"""


def halved(graph: Graph, value: Value) -> None:
    """What reads the value reads half of it."""
    nodes = [use.node for use in tuple(value.uses())]
    half = graph.constant("half", np.float32(0.5))
    made = graph.insert("Mul", [value, half], "halved", value.producer())
    graph.replace_readers(value, made, nodes)


def whole(name: str) -> list[list[np.ndarray]]:
    graph = parse_text(MODEL).with_shapes()
    halved(graph, graph.values()[name])
    session = OrtSession(graph.to_bytes())
    return [session.run(None, feed) for feed in FEEDS]


@pytest.mark.parametrize("budget", [1, 100, BUDGET])
def test_the_answers_are_those_of_the_whole_graph(budget: int) -> None:
    graph = parse_text(MODEL).with_shapes()
    names = ["a", "b", "c"]
    found = dict(changed(graph, names, halved, FEEDS, NO_OPERATORS, budget))
    assert list(found) == names
    for name, answers in found.items():
        for made, meant in zip(answers, whole(name), strict=True):
            np.testing.assert_array_equal(np.stack(made), np.stack(meant))


def test_a_leg_is_what_lies_behind_and_what_that_is_fed() -> None:
    graph = parse_text(MODEL).with_shapes()
    found = {str(leg.value.name): leg for leg in legs(graph, ["a", "b", "c", "y"])}
    assert list(found) == ["a", "b", "c"]  # nobody reads `y`
    assert [node.op_type for node in found["b"].nodes] == ["Add", "Sigmoid"]
    assert [value.name for value in found["b"].cut] == ["b", "a"]
    assert [node.op_type for node in found["c"].nodes] == ["Sigmoid"]


def test_the_graph_itself_stays_as_it_was() -> None:
    graph = parse_text(MODEL).with_shapes()
    before = graph.to_bytes()
    assert len(list(changed(graph, ["a", "b"], halved, FEEDS, NO_OPERATORS))) == 2
    assert graph.to_bytes() == before
