"""Graphs run step by step: every node once per sample, and no more held than fits."""

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.engine.float_session import float_session
from npumake.engine.partial.cut import steps_at
from npumake.engine.partial.walk import LayerRoute, LayerWalk
from npumake.graph import parse_text

# A wide first layer, a narrow second; the third reads the second beside a sum of it.
TEXT = (
    '<ir_version: 9, opset_import: ["" : 17]> '
    "a (float[1,1,8,8] x) => (float[] y) "
    "<float[16,1,1,1] v, float[2,16,8,8] w, float[2,2,1,1] u> "
    "{ first = Conv(x, v)  r = Relu(first)  second = Conv(r, w)  s = Relu(second)"
    "  t = Add(s, second)  third = Conv(t, u)  y = Relu(third) }"
)


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    sizes = {"v": (16, 1, 1, 1), "w": (2, 16, 8, 8), "u": (2, 2, 1, 1)}
    text = TEXT
    for name, size in sizes.items():
        numbers = ",".join(f"{number:.4f}" for number in rng.normal(size=size).ravel())
        text = text.replace(f"] {name}", f"] {name} = {{{numbers}}}")
    return parse_text(text)


@pytest.fixture
def feeds():
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=(1, 1, 8, 8)).astype(np.float32)} for _ in range(20)]


def layers(graph):
    return [node for node in graph.nodes() if node.op_type == "Conv"]


def carried(graph, *, first):
    return [
        sorted(str(value.name) for value in step.carried)
        for step in steps_at(graph, layers(graph), first=first)
    ]


def test_a_layer_ends_a_step_or_begins_one(graph):
    assert carried(graph, first=False) == [["first"], ["second"], ["third"]]
    assert carried(graph, first=True) == [["x"], ["r"], ["t"], []]


@pytest.mark.parametrize("budget", [1 << 30, 3 * 4 * 16 * 64, 1])
def test_what_is_carried_is_what_the_model_makes(graph, feeds, budget):
    watched = graph.copy()
    watched.expose(["r", "t"])
    session = float_session(watched)
    cut = steps_at(graph, layers(graph), first=True)
    walk = LayerWalk([LayerRoute(graph, cut)], feeds, NO_OPERATORS, budget)
    walk.step(0)
    for at, name in ((1, "r"), (2, "t")):
        walk.step(at)
        assert sorted(set(walk.numbers)) == sorted(walk.numbers)
        for number, held in zip(walk.numbers, walk.samples[0], strict=True):
            (meant,) = session.run([name], feeds[number])
            assert np.array_equal(held[name], meant)


def test_samples_join_where_there_is_room_for_them(graph, feeds):
    cut = steps_at(graph, layers(graph), first=True)
    walk = LayerWalk([LayerRoute(graph, cut)], feeds, NO_OPERATORS, 3 * cut[1].bytes)
    walk.step(0)
    assert walk.numbers == [0, 8, 16]  # evenly spread
    walk.step(1)
    assert walk.numbers == [0, 8, 16]
    walk.step(2)
    assert sorted(walk.numbers) == list(range(20))


def test_what_is_asked_besides_is_held_until_others_join(graph, feeds):
    cut = steps_at(graph, layers(graph), first=False)
    budget = 3 * cut[0].bytes
    walk = LayerWalk([LayerRoute(graph, cut)], feeds, NO_OPERATORS, budget)
    relu = next(node for node in graph.nodes() if node.op_type == "Relu").outputs[0]
    walk.advance(0)
    walk.join(0)
    walk.advance(1, [relu])
    assert all({"r", "second"} == held.keys() for held in walk.samples[0])
    walk.join(1)
    assert all({"second"} == held.keys() for held in walk.samples[0])
    assert sum(array.nbytes for held in walk.samples[0] for array in held.values()) <= budget
    assert sorted(walk.numbers) == walk.chosen == list(range(20))
