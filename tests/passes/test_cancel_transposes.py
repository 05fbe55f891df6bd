"""Transposes that cancel, and those that stay where they are."""

import pytest

from npumake.graph import attribute, parse_text
from npumake.passes.cancel_transposes import cancel_transposes

IMAGE = "agraph (float[1,2,3,4] x) => (float[N,M,O,P] y)"
TO_NHWC, TO_NCHW = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"


def left(text: str) -> list[str]:
    graph = parse_text(text)
    cancel_transposes(graph)
    return [node.op_type for node in graph.nodes()]


def test_two_orders_become_one():
    graph = parse_text(
        f"{IMAGE} {{ a = {TO_NHWC}(x)  b = Transpose<perm=[0,2,1,3]>(a)  y = Relu(b) }}"
    )
    assert cancel_transposes(graph) == 1
    assert attribute(graph.nodes("Transpose")[0], "perm") == (0, 3, 2, 1)


@pytest.mark.parametrize(
    "f", ["Relu(a)", "Sigmoid(a)", "Clip(a, k)", "Add(a, c)", "Mul(a, a)", "PRelu(a, c)"]
)
def test_an_elementwise_node_lets_them_meet(f):
    text = f"""{IMAGE} <float k = {{0}}, float[2] c = {{1, 2}}> {{
        a = {TO_NHWC}(x)  b = {f}  y = {TO_NCHW}(b) }}"""
    assert left(text) == [f.split("(")[0]]


@pytest.mark.parametrize("f", ["Softmax<axis=1>(a)", "ReduceMean<axes=[1]>(a)", "CumSum(a, k)"])
def test_a_node_that_sees_an_axis_keeps_them_apart(f):
    text = f"{IMAGE} <int64 k = {{1}}> {{ a = {TO_NHWC}(x)  b = {f}  y = {TO_NCHW}(b) }}"
    assert left(text).count("Transpose") == 2


def test_codes_on_one_scale_may_pass_and_codes_per_channel_may_not():
    text = """{image} <float{dims} s = {{{s}}}, int8{dims} z = {{{z}}}> {{ a = {first}(x)
        q = QuantizeLinear<axis=3>(a, s, z)  d = DequantizeLinear<axis=3>(q, s, z)
        y = {second}(d) }}"""
    common = {"image": IMAGE, "first": TO_NHWC, "second": TO_NCHW}
    one = text.format(dims="", s="0.1", z="3", **common)
    many = text.format(dims="[2]", s="0.1, 0.2", z="3, 4", **common)
    assert left(one) == ["QuantizeLinear", "DequantizeLinear"]
    assert left(many).count("Transpose") == 2


def test_nothing_moves_where_as_many_would_be_left():
    text = f"{IMAGE} {{ a = {TO_NHWC}(x)  y = Relu(a) }}"
    assert left(text) == ["Transpose", "Relu"]


def test_an_operand_without_a_transpose_gets_one_only_when_two_go():
    text = f"""agraph (float[1,2,3,4] x, float[1,3,4,2] z) => (float[N,M,O,P] y)
        {{ a = {TO_NHWC}(x)  b = Add(a, z)  y = {TO_NCHW}(b) }}"""
    assert left(text).count("Transpose") == 1


def test_both_outputs_keep_their_names():
    graph = parse_text(f"""agraph (float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,3,4,2] z) {{
        a = {TO_NHWC}(x)  z = Relu(a)  b = Neg(z)  y = {TO_NCHW}(b) }}""")
    cancel_transposes(graph)
    assert [value.name for value in graph.outputs] == ["y", "z"]
    assert len(graph.nodes("Transpose")) == 1


def test_one_in_front_of_a_reshape_that_copies_a_size_stays():
    text = """agraph (float[1,4,1,1] x) => (float[N,M] y) <int64[2] k = {0, -1}> {
        a = Transpose<perm=[1,0,2,3]>(x)  y = Reshape(a, k) }"""
    assert left(text) == ["Transpose", "Reshape"]
