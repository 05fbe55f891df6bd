"""Network: with all pairs on, a probe says what the calibrated model says, whoever reads what."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import calibration_nodes
from npumake.debug.network import SwitchedNetwork
from npumake.debug.probing import Probing
from npumake.engine.float_session import float_session
from npumake.engine.partial.cut import even_segments
from npumake.graph import Graph, parse_text

GRID = (
    "<float s = {0.5}, float t = {0.25}, int8 z = {0}, "
    "bool when = {1}, float[4] w = {1.3, -2.1, 0.4, 3.0}>"
)
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\nnetwork (float[4] x)'
PAIR = """
    {0}_q = QuantizeLinear({0}, {1}, z)
    {0}_d = DequantizeLinear({0}_q, {1}, z)"""


def pair(tensor: str, scale: str = "s") -> str:
    return PAIR.format(tensor, scale)


def network(outputs: str, *lines: str) -> Graph:
    body = "\n    ".join(lines)
    graph = parse_text(f"{HEAD} => ({outputs}) {GRID} {{\n    {body}\n}}").with_shapes()
    for node in graph.nodes():
        node.name = node.outputs[0].name
    return Graph(graph.model)


IN_A_ROW = network(
    "float[4] y", pair("x"), "a = Mul(x_d, w)", pair("a"), pair("a_d", "t"), "y = Add(a_d, a_d_d)"
)
SOME_READ_FLOAT = network(
    "float[4] y, float[4] b_d", "a = Mul(x, w)", pair("a"), "b = Abs(a)", pair("b"),
    "c = Sub(a_d, x)", "d = Relu(c)", pair("d"), "y = Mul(d_d, b)",
)  # fmt: skip
CONSTANTS = network("float[4] y", pair("w"), "a = Add(x, w_d)", pair("a", "t"), "y = Abs(a_d)")
BRANCHES = network(
    "float[4] y", "a = Mul(x, w)", pair("a"),
    "b = If(when) <then_branch = yes () => (float[4] u) { u = Abs(a_d) }, "
    "else_branch = no () => (float[4] v) { v = Neg(a_d) }>",
    "y = Add(b, x)",
)  # fmt: skip


@pytest.mark.parametrize(
    "graph",
    [IN_A_ROW, SOME_READ_FLOAT, CONSTANTS, BRANCHES],
    ids=["in a row", "some read float", "constants", "branches"],
)
def test_with_all_pairs_on_a_probe_is_the_calibrated_model(graph):
    nodes = calibration_nodes(graph)
    feed = {"x": np.float32([0.9, -1.7, 2.4, 0.3])}
    samples = Samples(("one",), lambda _: feed)
    ((number, sums),) = Probing(graph, [nodes], samples).sums()
    none = [[], *([one] for one in nodes)]
    lone = dict(Probing(graph, none, samples).sums())
    made = float_session(graph, fusion="none").run(None, feed)
    assert number == 0
    assert [one.bb for one in sums] == [float(np.sum(np.float64(each) ** 2)) for each in made]
    assert all(one.squared == 0 for one in lone[0])  # with none, the float model
    assert all(any(one.squared > 0 for one in lone[at + 1]) for at in range(len(nodes)))


def test_pairs_in_a_row_are_a_chain():
    nodes = calibration_nodes(IN_A_ROW)
    every = {one.name: one for one in nodes}
    chains = SwitchedNetwork(IN_A_ROW, nodes)
    assert [one.tensor for one in chains.chain("a_d_d", every)] == ["a", "a"]
    assert [one.tensor for one in chains.chain("a_d", every)] == ["a"]
    assert chains.chain("a_d_d", {}) == []
    assert chains.root("a_d_d") == "a"


WAIST = parse_text("""<ir_version: 8, opset_import: ["" : 17]>
network (float[4, 4] x) => (float[4, 4] y, float[4, 1] s) {
    wide = Abs(x)
    s = ReduceMax <axes = [1]> (wide)
    t = Neg(s)
    u = Sqrt(t)
    y = Mul(x, u)
}""").with_shapes()


def test_what_crosses_a_border_is_what_is_made_before_it_and_read_behind_it():
    network = SwitchedNetwork(WAIST, [])
    assert network.crossing() == [0, 16, 4, 4, 4, 0]


def test_a_part_ends_near_its_equal_part_where_least_crosses():
    network = SwitchedNetwork(WAIST, [])
    assert even_segments(network.floats, network.crossing(), 1) == [(0, 5)]
    assert even_segments(network.floats, network.crossing(), 2) == [(0, 2), (2, 5)]
    assert even_segments(network.floats, [0] * 6, 5) == [(n, n + 1) for n in range(5)]
    assert even_segments([], [0], 3) == []
