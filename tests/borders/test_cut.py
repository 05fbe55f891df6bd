"""Borders: where a model ends, and which nodes at its ends go."""

import numpy as np
import pytest

from npumake.borders.cut import end_at, remove_node, remove_types
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.graph import parse_text, shape

WHERE = Route("model.remove_nodes.0")
TWO = """agraph (float[1,4] a, float[1,4] b) => (float[1,4] y, float[1,4] z) {
    m = Relu(a)  n = Neg(b)  s = Add(m, n)  y = Exp(m)  z = Abs(s)
}"""
CHAIN = """agraph (float[1,2,2,3] x) => (float[1,12] y) {
    f = Cast <to = 10> (x)
    g = Cast <to = 1> (f)
    t = Transpose <perm = [0,3,1,2]> (g)
    c = Relu(t)
    u = Transpose <perm = [0,2,3,1]> (c)
    y = Flatten(u)
}"""


def kinds(graph):
    return [node.op_type for node in graph.nodes()]


def ends(graph):
    return [str(v.name) for v in graph.inputs], [str(v.name) for v in graph.outputs]


@pytest.mark.parametrize(
    ("outputs", "left"),
    [
        (["m"], (["a"], ["m"])),
        (["n", "m"], (["a", "b"], ["n", "m"])),
        (["z"], (["a", "b"], ["z"])),
        (["n"], (["b"], ["n"])),
    ],
)
def test_a_model_ends_where_it_is_told_and_loses_the_inputs_nobody_reads(outputs, left):
    graph = parse_text(TWO)
    end_at(graph, outputs)
    assert ends(graph) == left
    graph = graph.with_shapes()
    a, b = np.float32([[-1, 0, 1, 2]]), np.float32([[1, 2, 3, -4]])
    values = {"m": np.maximum(a, 0), "n": -b, "z": np.abs(np.maximum(a, 0) - b)}
    feeds = {name: {"a": a, "b": b}[name] for name in left[0]}
    made = OrtSession(graph.to_bytes()).run(None, feeds)
    for name, value in zip(outputs, made, strict=True):
        np.testing.assert_array_equal(value, values[name])


def test_an_input_that_was_never_read_stays():
    graph = parse_text("agraph (float[1] a, float[1] b) => (float[1] y) { m = Neg(a) y = Exp(m) }")
    end_at(graph, ["m"])
    assert ends(graph) == (["a", "b"], ["m"])


def test_a_node_named_as_an_output_gives_all_it_makes():
    text = "agraph (float[4] x) => (float[2] y) { p, q = Split <axis = 0> (x)  y = Add(p, q) }"
    graph = parse_text(text)
    next(iter(graph.nodes("Split"))).name = "halves"
    end_at(graph, ["halves"])
    assert ends(graph)[1] == ["p", "q"]


@pytest.mark.parametrize(
    ("outputs", "what", "hint"),
    [
        (["mm"], "`mm` is neither a node nor a tensor", "did you mean `m`?"),
        (["a"], "`a` is neither", "known: m, n, s, y, z"),
        (["m", "m"], "`m` is an output already", ""),
    ],
)
def test_an_output_the_model_does_not_compute_is_an_error(outputs, what, hint):
    with pytest.raises(ProjectError, match=what) as caught:
        end_at(parse_text(TWO), outputs)
    assert caught.value.where == Route(f"model.outputs.{len(outputs) - 1}")
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("types", "left"),
    [
        (["Transpose"], "Cast Cast Transpose Relu Transpose Flatten"),  # a Cast is in the way
        (["Cast"], "Transpose Relu Transpose Flatten"),  # one, then the next one is at the border
        (["Cast", "Transpose"], "Relu Transpose Flatten"),
        (["Transpose", "Cast"], "Transpose Relu Transpose Flatten"),
        (["Quantize", "Softmax"], "Cast Cast Transpose Relu Transpose Flatten"),
    ],
)
def test_types_go_in_the_given_order_and_only_from_the_border(types, left):
    graph = parse_text(CHAIN)
    removed = remove_types(graph, types)
    assert " ".join(kinds(graph)) == left
    assert removed == 6 - len(kinds(graph))
    assert ends(graph) == (["x"], ["y"])
    graph.with_shapes()


def test_what_is_left_is_the_model_without_its_ends():
    graph = parse_text(CHAIN)
    remove_types(graph, ["Cast", "Transpose"])
    remove_node(graph, str(graph.nodes("Flatten")[0].name), WHERE)
    remove_types(graph, ["Transpose"])
    graph = graph.with_shapes()
    assert kinds(graph) == ["Relu"]
    assert [shape(value) for value in (*graph.inputs, *graph.outputs)] == [(1, 3, 2, 2)] * 2
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 2, 2)
    np.testing.assert_array_equal(OrtSession(graph.to_bytes()).run(None, {"x": x})[0], x.clip(0))


def test_quantize_and_dequantize_are_what_onnx_calls_linear():
    text = """agraph (float[4] x) => (float[4] y)
    <float s = {0.5}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z)  m = MaxPool1(q)  y = DequantizeLinear(m, s, z)
    }""".replace("MaxPool1", "Identity")
    graph = parse_text(text)
    assert remove_types(graph, ["Quantize", "Dequantize"]) == 2
    graph = graph.with_shapes()
    codes = np.int8([-3, 0, 7, 127])
    assert OrtSession(graph.to_bytes()).run(None, {"x": codes})[0].tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("text", "node", "reason"),
    [
        (CHAIN, "c", "it is inside the model"),
        (CHAIN, "none", "the model has no node"),
        (TWO, "s", "2 computed inputs"),
        ("agraph (float[2] x) => (float[2] y) { y = Relu(x) }", "y", "joins an input to an output"),
        (
            "agraph (float[2] x) => (float[2] y) { m = Relu(x)  y = Add(m, x) }",
            "m",
            "others read `x` too",
        ),
        (
            "agraph (float[2] x) => (float[2] y, float[2] z)"
            "{ m = Neg(x) y = Relu(m) n = Neg(y) z = Exp(n) }",
            "y",
            "others read `y` too",
        ),
        (
            "agraph (float[2] x) => (float[2] y, float[2] m) { m = Neg(x) y = Relu(m) }",
            "y",
            "`m` is an output already",
        ),
    ],
)
def test_a_node_that_cannot_be_removed_is_an_error_with_the_reason(text, node, reason):
    with pytest.raises(ProjectError, match=reason) as caught:
        remove_node(parse_text(text), node, WHERE)
    assert caught.value.where == WHERE
