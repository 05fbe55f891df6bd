"""GraphNames finds what Graph finds by a walk over all nodes."""

from __future__ import annotations

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
