"""The order in which the nodes of a model are written: short ways to an end first."""

import onnx

from npumake.graph import parse_text, short_paths_first


def order(text):
    model = parse_text(text).to_bytes()
    ((found, *_),), _ = short_paths_first(model, 1)
    before, after = onnx.load_from_string(model), found
    assert sorted(n.name for n in after.graph.node) == sorted(n.name for n in before.graph.node)
    onnx.checker.check_model(found)
    return " ".join(node.op_type for node in after.graph.node)


def test_what_looks_at_a_tensor_comes_behind_its_maker():
    text = """a (float[4] x) => (float[4] y, float[4] p, float[4] q)
    { r = Relu(x)  t = Tanh(r)  y = Exp(t)  p = Neg(r)  s = Abs(t)  q = Neg(s) }"""
    assert order(text) == "Relu Neg Tanh Exp Abs Neg"


def test_makers_come_before_readers_where_ways_meet_again():
    text = """a (float[4] x) => (float[4] y)
    { r = Relu(x)  s = Exp(r)  t = Tanh(s)  u = Neg(r)  v = Add(t, u)  w = Add(v, r)
      y = Abs(w) }"""
    assert order(text) == "Relu Neg Exp Tanh Add Add Abs"
