"""Nodes taken off the border of a compiled model: which, in which order, and what remains."""

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.runtime.border import deleted_nodes, modified, removable
from quant.test_sums import CONV, feeds, graph, program

GRAPH = """agraph (float[2,1] x) => (float[1,2] y)
    <float s = {0.25}, int8 z = {-3}, float t = {0.5}, int8 o = {0}, int8[2,2] w = {1, 2, 3, -4}> {
    turned = Transpose<perm = [1, 0]>(x)
    xq = QuantizeLinear(turned, s, z)  xd = DequantizeLinear(xq, s, z)
    wd = DequantizeLinear(w, t, o)
    m = MatMul(xd, wd)
    q = QuantizeLinear(m, t, o)  d = DequantizeLinear(q, t, o)
    y = Softmax(d) }"""
TWO_PATHS = """agraph (float[1,2] x) => (float[1,2] y, float[1,2] v)
    <float s = {0.25}, float t = {0.5}, int8 o = {0}> {
    q = QuantizeLinear(x, s, o)  y = DequantizeLinear(q, s, o)
    p = QuantizeLinear(x, t, o)  v = DequantizeLinear(p, t, o) }"""
X = np.array([[1.5], [-2.0]], np.float32)


def bundle(text=GRAPH):
    return Bundle("any", lowered(parse_text(text), "half_even"), {})


def kinds(one):
    return [(found.kind, found.side) for found in removable(one.program)]


def test_only_what_is_directly_at_the_border_can_go():
    assert kinds(bundle()) == [("Transpose", "input"), ("Softmax", "output")]


def test_what_comes_to_be_at_the_border_can_go_then():
    less, gone = modified(bundle(), [("type", "Softmax"), ("type", "Transpose")])
    assert [one.kind for one in gone] == ["Softmax", "Transpose"]
    assert kinds(less) == [("Quantize", "input"), ("Dequantize", "output")]


def test_the_scales_of_sums_are_kept_for_whoever_dequantizes_them():
    whole = Bundle("rdk-x5", program(graph(CONV)), {})
    less, (gone,) = modified(whole, [("type", "Dequantize")])
    feed = feeds()[0]
    (sums,) = ReferenceSession(less.program).run(None, feed)
    (record,) = deleted_nodes(less)
    real = sums.astype(np.float32) * np.float32(record["scales"]).reshape(1, -1, 1, 1)
    assert gone.kind == record["type"] == "Dequantize"
    assert real.tolist() == ReferenceSession(whole.program).run(None, feed)[0].tolist()


def test_the_order_is_that_of_the_wishes():
    with pytest.raises(GraphError, match="no Dequantize at the border can be deleted"):
        modified(bundle(), [("type", "Dequantize"), ("type", "Softmax")])


def test_a_node_inside_and_one_that_is_not_there_are_refused_with_the_candidates():
    names = [one.step.name for one in removable(bundle().program)]
    inside = next(s.name for s in bundle().program.instructions if s.op == "matmul")
    for name, what in [(inside, "not at the border"), ("nobody", "no node `nobody`")]:
        with pytest.raises(GraphError, match=what) as caught:
            modified(bundle(), [("node", name)])
        assert caught.value.hint == f"nodes that can be deleted: {names}"


def test_an_input_that_two_nodes_read_keeps_both():
    assert kinds(bundle(TWO_PATHS)) == [("Dequantize", "output")] * 2


def test_what_was_taken_away_can_be_done_by_hand():
    whole = ReferenceSession(bundle().program).run(["d"], {"x": X})[0]
    wishes = [("type", kind) for kind in ("Transpose", "Quantize", "Softmax", "Dequantize")]
    less, _ = modified(bundle(), wishes)
    (name,) = less.program.inputs
    fed = np.clip(np.round(X.T / 0.25) - 3, -128, 127).astype(np.int8)
    (codes,) = ReferenceSession(less.program).run(None, {name: fed})
    np.testing.assert_array_equal((codes - 0.0) * 0.5, whole)


def test_the_file_remembers_what_was_taken_away():
    less, gone = modified(bundle(), [("type", "Softmax"), ("type", "Dequantize")])
    again = Bundle.from_bytes(less.to_bytes())
    assert [node["name"] for node in deleted_nodes(again)] == [one.step.name for one in gone]
    assert deleted_nodes(again)[1]["tensors"]["q"] == {
        "dtype": "int8",
        "scale": 0.5,
        "shape": [1, 2],
        "zero_point": 0,
    }
