"""Written: models put together of a graph's nodes, and of copies of them under other names."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.graph import SerializedGraph, needed, parse_text, part, serialized_part

CHAIN = """<ir_version: 8, opset_import: ["" : 17]>
chain (float[2] x) => (float[2] y) <float[2] c = {1.0, 2.0}> {
    a = Add(x, c)
    b = Mul(a, c)
    y = Sub(b, a)
}"""
BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
branching (bool when, float[2] a) => (float[2] y) {
    b = Relu(a)
    y = If(when) <then_branch = yes () => (float[2] t) { t = Abs(b) },
                  else_branch = no () => (float[2] e) { e = Neg(b) }>
}"""


def run(model: bytes, feeds: dict[str, np.ndarray]) -> list[list[float]]:
    return [made.tolist() for made in OrtSession(model).run(None, feeds)]


def test_copies_lie_beside_what_they_are_copies_of():
    written = SerializedGraph(parse_text(CHAIN))
    add, mul, sub = written.pieces
    mark = written.mark()
    copies = [
        mul.renamed({"c": f"c{mark}", "b": f"b{mark}"}),
        sub.renamed({"b": f"b{mark}", "y": f"y{mark}"}),
    ]
    constants = {f"c{mark}": np.float32([10, 10])}
    model = written.model([add, mul, sub, *copies], ["y", f"y{mark}"], constants)
    assert run(model, {"x": np.float32([1, 1])}) == [[0, 3], [18, 27]]


def test_a_part_is_fed_what_its_nodes_read_and_do_not_make():
    written = SerializedGraph(parse_text(CHAIN))
    model = written.model(written.pieces[1:2], ["b"])
    assert run(model, {"a": np.float32([3, 4])}) == [[3, 8]]


def test_what_branches_read_is_read_by_their_node_and_renamed_with_it():
    written = SerializedGraph(parse_text(BRANCHES))
    relu, branching = written.pieces
    assert branching.reads == ("when", "b")
    model = written.model([branching.renamed({"b": "a"})], ["y"])
    fed = {"when": np.array(False), "a": np.float32([1, -1])}
    assert run(model, fed) == [[-1, 1]]
    assert needed([relu, branching], ["b"]) == [relu]


def test_a_mark_is_in_no_name():
    written = SerializedGraph(
        parse_text(CHAIN.replace("b = Mul", "b_at = Mul").replace("Sub(b,", "Sub(b_at,"))
    )
    assert written.mark() == "@"
    graph = parse_text(CHAIN)
    graph.rename(graph.values()["b"], "b@1")
    assert SerializedGraph(graph).mark() == "@@"


@pytest.mark.parametrize("text", [CHAIN, BRANCHES])
def test_a_part_serialized_at_once_gives_what_its_graph_gives(text):
    graph = parse_text(text).with_shapes()
    nodes = graph.nodes()
    draw = np.random.default_rng(0)
    for start in range(len(nodes)):
        for stop in range(start + 1, len(nodes) + 1):
            chosen, results = nodes[start:stop], nodes[stop - 1].outputs
            model = serialized_part(graph, chosen, results)
            names = OrtSession(model).input_names
            feeds = {name: draw.normal(size=2).astype("f4") for name in names}
            feeds |= {"when": np.array(True)} if "when" in feeds else {}
            assert run(model, feeds) == run(part(graph, chosen, results).to_bytes(), feeds)


def test_a_part_serialized_at_once_has_the_constants_of_now():
    graph = parse_text(CHAIN)
    add, *_ = graph.nodes()
    graph.set_inputs(add, {1: graph.constant("c", np.float32([5, 7]))})
    model = serialized_part(graph, [add], add.outputs)
    assert run(model, {"x": np.float32([1, 1])}) == [[6, 8]]
