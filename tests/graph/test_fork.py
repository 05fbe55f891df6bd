"""fork: nodes twice in one graph, so that a change to the copies leaves the nodes as they are."""

from __future__ import annotations

import numpy as np

from pipeline.engine.mixed import float_session
from pipeline.graph import fork, has_bodies, parse_text

CHAIN = """<ir_version: 8, opset_import: ["" : 17]>
chain (float[2] x) => (float[2] y) <float[2] c = {1.0, 2.0}> {
    a = Add(x, c)
    b = Mul(a, c)
    y = Sub(b, a)
}"""


def test_copies_read_each_other_and_else_what_was_read_before():
    graph = parse_text(CHAIN)
    add, mul, sub = graph.nodes()
    names = fork(graph, [mul, sub])
    (copy,) = (node for node in graph.nodes() if node.name == names.nodes[str(mul.name)])
    graph.set_inputs(copy, {1: graph.constant("other", np.float32([10, 10]))})
    graph.expose(["y", names.values["y"]])
    assert graph.nodes("Add") == [add]
    y, other = float_session(graph).run(None, {"x": np.float32([1, 1])})
    assert (y.tolist(), other.tolist()) == ([0, 3], [18, 27])


def test_a_node_with_branches_holds_graphs():
    graph = parse_text("""<ir_version: 8, opset_import: ["" : 17]>
    branching (bool when, float[2] a) => (float[2] y) {
        y = If(when) <then_branch = yes () => (float[2] t) { t = Abs(a) },
                      else_branch = no () => (float[2] e) { e = Neg(a) }>
    }""")
    assert [has_bodies(node) for node in graph.nodes()] == [True]
