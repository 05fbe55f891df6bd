"""A part has the outputs of the whole graph, and runs only the nodes behind its tensor."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.engine.ort import OrtSession
from npumake.engine.partial.cut import downstream_parts
from npumake.engine.partial.downstream import BUDGET_BYTES, change_groups, changed
from npumake.graph import SerializedGraph, parse_text

RNG = np.random.default_rng(0)
FEEDS = [{"x": RNG.normal(size=(1, 4)).astype(np.float32)} for _ in range(3)]
# Three answers: `b` does not reach `z`, and `c` is read behind it. `a` is read behind `b` too.
MODEL = """m (float[1,4] x) => (float[1,4] y, float[1,4] z, float[1,4] c)
<float[4] k = {1, 2, 3, 4}>
{ a = Mul(x, k)  b = Tanh(a)  c = Add(a, b)  y = Sigmoid(c)  z = Neg(a) }"""


def halved(name: str, values: np.ndarray) -> np.ndarray:
    return values * np.float32(0.5)


def whole(name: str) -> list[list[np.ndarray]]:
    """With a node that halves, for all who read the tensor and for the world."""
    graph = parse_text(MODEL).with_shapes()
    value = graph.values()[name]
    nodes = [use.node for use in tuple(value.uses())]
    half = graph.constant("half", np.float32(0.5))
    made = graph.insert("Mul", [value, half], "halved", value.producer())
    graph.replace_readers(value, made, nodes)
    if value.is_graph_output():
        graph.replace_output(value, made)
    session = OrtSession(graph.to_bytes())
    return [session.run(None, feed) for feed in FEEDS]


@pytest.mark.parametrize("budget", [1, 100, BUDGET_BYTES])
def test_the_answers_are_those_of_the_whole_graph(budget: int) -> None:
    graph = parse_text(MODEL).with_shapes()
    names = ["x", "a", "b", "c", "y", "z"]
    found = dict(changed(graph, names, halved, FEEDS, NO_OPERATORS, budget))
    assert list(found) == names
    for name, answers in found.items():
        for made, meant in zip(answers, whole(name), strict=True):
            np.testing.assert_array_equal(np.stack(made), np.stack(meant))


@pytest.mark.parametrize("budget", [1, 100, BUDGET_BYTES])
def test_a_group_by_itself_is_one_group_with_the_same_outputs(budget: int) -> None:
    graph = parse_text(MODEL).with_shapes()
    names = ["x", "a", "b", "c", "y", "z"]
    groups = change_groups(graph, names, len(FEEDS), budget)
    assert [name for group in groups for name in group] == names
    together = dict(changed(graph, names, halved, FEEDS, NO_OPERATORS, budget))
    for group in groups:
        assert change_groups(graph, group, len(FEEDS), budget) == [group]
        for name, outputs in changed(graph, group, halved, FEEDS, NO_OPERATORS, budget):
            assert np.array(outputs).tobytes() == np.array(together[name]).tobytes()


def test_a_leg_is_what_lies_behind_and_what_that_is_fed() -> None:
    written = SerializedGraph(parse_text(MODEL).with_shapes())
    found = {part.name: part for part in downstream_parts(written, ["a", "b", "c", "y"])}
    assert list(found) == ["a", "b", "c", "y"]
    assert [piece.op_type for piece in found["b"].pieces] == ["Add", "Sigmoid"]
    assert found["b"].cut == ["b", "a"]
    assert [piece.op_type for piece in found["c"].pieces] == ["Sigmoid"]
    assert found["y"].pieces == []  # nobody reads it but the world


def test_nothing_comes_of_a_tensor_that_nobody_reads() -> None:
    graph = parse_text(MODEL.replace("z = Neg(a)", "z = Neg(a)  d = Abs(a)")).with_shapes()
    assert [name for name, _ in changed(graph, ["d", "a"], halved, FEEDS, NO_OPERATORS)] == ["a"]


def test_the_graph_itself_stays_as_it_was() -> None:
    graph = parse_text(MODEL).with_shapes()
    before = graph.to_bytes()
    assert len(list(changed(graph, ["a", "b"], halved, FEEDS, NO_OPERATORS))) == 2
    assert graph.to_bytes() == before
