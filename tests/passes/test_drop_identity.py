"""Nodes that give what they are given, and those that only look like it."""

import pytest

from npumake.graph import parse_text
from npumake.passes.drop_identity import drop_identity


def left(text: str) -> list[str]:
    graph = parse_text(text)
    drop_identity(graph)
    return [node.op_type for node in graph.nodes()]


@pytest.mark.parametrize(
    ("node", "dropped"),
    [
        ("Identity(x)", True),
        ("Cast<to=1>(x)", True),
        ("Cast<to=10>(x)", False),
        ("Transpose<perm=[0,1,2]>(x)", True),
        ("Transpose<perm=[0,2,1]>(x)", False),
        ("Transpose(x)", False),
        ("Reshape(x, same)", True),
        ("Reshape(x, other)", False),
        ("Flatten(x)", False),
        ("Dropout(x)", True),
        ("Dropout(x, ratio, off)", True),
        ("Dropout(x, ratio, on)", False),
        ("Dropout(x, ratio, told)", False),
    ],
)
def test_a_node_is_dropped_when_it_changes_nothing(node, dropped):
    text = f"""agraph (float[2,2,2] x, bool told) => (int64 y)
        <int64[3] same = {{2, 2, 2}}, int64[3] other = {{2, 4, 1}}, float ratio = {{0.5}},
         bool off = {{0}}, bool on = {{1}}>
        {{ a = {node}  y = Size(a) }}"""
    assert (left(text) == ["Size"]) == dropped


def test_an_identity_between_graph_input_and_graph_output_is_left_alone():
    assert left("agraph (float[4] x) => (float[4] y) { y = Identity(x) }") == ["Identity"]


def test_an_identity_of_a_constant_that_is_an_output_is_left_alone():
    text = "agraph (float[4] x) => (float[2] y) <float[2] c = {1, 2}> { y = Identity(c) }"
    assert left(text) == ["Identity"]


def test_an_identity_between_two_outputs_is_left_alone():
    text = "agraph (float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Identity(y) }"
    assert left(text) == ["Relu", "Identity"]


def test_a_dropout_whose_mask_is_read_is_left_alone():
    text = "agraph (float[4] x) => (float[4] y, bool[4] m) { a, m = Dropout(x)  y = Relu(a) }"
    assert left(text) == ["Dropout", "Relu"]


def test_an_output_keeps_its_name_when_its_node_goes():
    graph = parse_text("agraph (float[4] x) => (float[4] y) { a = Relu(x)  y = Identity(a) }")
    assert drop_identity(graph) == 1
    assert [(node.op_type, node.outputs[0].name) for node in graph.nodes()] == [("Relu", "y")]


def test_a_cast_whose_types_are_not_known_is_left_alone():
    graph = parse_text(
        "agraph (float[4] x) => (float[4] y) { a = Neg(x)  b = Cast<to=1>(a)  y = Abs(b) }"
    )
    cast = graph.nodes("Cast")[0]
    cast.inputs[0].type = cast.outputs[0].type = None
    assert drop_identity(graph) == 0


def test_an_operator_of_another_domain_that_is_called_identity_is_left_alone():
    text = """<ir_version: 9, opset_import: ["" : 17, "house" : 1]>
        agraph (float[4] x) => (float[4] y) { a = house.Identity(x)  y = Relu(a) }"""
    assert left(text) == ["Identity", "Relu"]
