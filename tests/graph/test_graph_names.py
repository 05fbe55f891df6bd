"""GraphNames finds what Graph finds by a walk over all nodes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from npumake.graph import Graph, GraphNames, origin, parse_text
from npumake.graph.origin import inherit

TEXT = """<ir_version: 8, opset_import: ["": 13]>
g (float[1, 4] x) => (float[1, 4] y) { a = Relu(x)  b = Sigmoid(a)  c = Tanh(b)  y = Add(a, c) }"""


@pytest.fixture
def graph() -> Graph:
    graph = parse_text(TEXT)
    graph.name_origins()
    relu, sigmoid, tanh, add = graph.nodes()
    inherit(sigmoid, relu, tanh)
    inherit(add, sigmoid)
    return graph


def test_every_name_is_found_as_by_a_walk(graph: Graph) -> None:
    names = [str(node.name) for node in graph.nodes()]
    for name in (*names, *graph.values(), "nowhere", ""):
        assert GraphNames(graph).find(name) == graph.find(name)


def test_a_name_of_the_trained_model_finds_every_node_of_it(graph: Graph) -> None:
    relu, *rest = graph.nodes()
    trained = str(relu.name)
    relu.name = "renamed"
    assert GraphNames(graph).find(trained) == graph.find(trained) == (relu, rest[0], rest[2])


def test_origins_are_joined_in_order_and_once(graph: Graph) -> None:
    relu, sigmoid, tanh, add = (str(node.name) for node in graph.nodes())
    assert origin(graph.nodes()[-1]) == (add, sigmoid, relu, tanh)


def test_a_free_name_costs_the_same_for_the_last_of_many_equal_ones() -> None:
    """Lines are counted: a search over all numbers calls nothing."""

    def lines(count: int) -> int:
        graph, ran = parse_text("a (float[1] x) => (float[1] y) { y = Relu(x) }"), 0

        def traced(frame: FrameType, event: str, _: object) -> Any:
            nonlocal ran
            ran += event == "line" and frame.f_code.co_name == "free_name"
            return traced

        before = sys.gettrace()
        sys.settrace(traced)
        try:
            names = [graph.free_name("x") for _ in range(count)]
        finally:
            sys.settrace(before)
        assert names == [f"x_{number + 1}" for number in range(count)]
        return ran

    assert lines(400) <= 2.1 * lines(200)
