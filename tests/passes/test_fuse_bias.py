"""A constant added behind a convolution or a matrix product, and what only looks like one."""

import numpy as np
import pytest

from npumake.graph import array, parse_text
from npumake.passes.fuse_affine import fuse_affine


def conv(c: str, body: str, outputs: str = "float[1,2,3,3] y") -> str:
    weight = "float[2,2,1,1] w = {1, 2, 3, 4}"
    return f"agraph (float[1,2,3,3] x) => ({outputs}) <{weight}, {c}> {{ {body} }}"


def fused(text: str) -> int:
    return fuse_affine(parse_text(text))


@pytest.mark.parametrize("added", ["a, c", "c, a"])
@pytest.mark.parametrize(
    ("c", "bias"),
    [
        ("float[1,2,1,1] c = {5, 6}", [5, 6]),
        ("float[2,1,1] c = {5, 6}", [5, 6]),
        ("float[1,1,1] c = {5}", [5, 5]),
        ("float c = {5}", [5, 5]),
    ],
)
def test_one_number_per_channel_becomes_the_bias(c, bias, added, outputs):
    graph = parse_text(conv(c, f"a = Conv(x, w)  y = Add({added})"))
    before = outputs(graph)["y"]
    assert fuse_affine(graph) == 1
    assert [node.op_type for node in graph.nodes()] == ["Conv"]
    assert array(graph.nodes()[0].inputs[2]).tolist() == bias
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=1e-6)


@pytest.mark.parametrize(
    "c",
    [
        "float[3] c = {1, 2, 3}",
        "float[1,1,3,3] c = {1, 2, 3, 4, 5, 6, 7, 8, 9}",
        "float[1,1,1,1,1] c = {1}",
    ],
)
def test_what_is_not_per_channel_is_left_alone(c):
    assert fused(conv(c, "a = Conv(x, w)  b = Add(a, c)  y = Size(b)", "int64 y")) == 0


def test_what_is_added_to_a_bias_joins_it():
    c = "float[1,2,1,1] c = {5, 6}, float[2] b = {1, 1}"
    graph = parse_text(conv(c, "a = Conv(x, w, b)  y = Add(a, c)"))
    assert fuse_affine(graph) == 1
    assert array(graph.nodes()[0].inputs[2]).tolist() == [6, 7]


def test_a_shared_convolution_is_left_alone():
    c = "float[1,2,1,1] c = {5, 6}"
    assert fused(conv(c, "a = Conv(x, w)  b = Add(a, c)  y = Mul(a, b)")) == 0


def test_a_convolution_that_is_a_graph_output_is_left_alone():
    outputs = "float[1,2,3,3] a, float[1,2,3,3] y"
    body = "a = Conv(x, w)  y = Add(a, c)"
    assert fused(conv("float[1,2,1,1] c = {5, 6}", body, outputs)) == 0


def test_a_convolution_added_to_itself_is_left_alone():
    c = "float[1,2,1,1] c = {5, 6}"
    assert fused(conv(c, "a = Conv(x, w)  y = Add(a, a)")) == 0


def test_an_addition_inside_a_branch_is_left_alone():
    text = """agraph (float[1,1,2,2] x, bool when) => (float[1,1,2,2] y)
        <float[1,1,1,1] w = {2}, float c = {1}> {
        a = Conv(x, w)
        y = If(when) <then_branch = yes () => (float[1,1,2,2] t) { t = Add(a, c) },
                      else_branch = no () => (float[1,1,2,2] e) { e = Abs(x) }> }"""
    assert fused(text) == 0


@pytest.mark.parametrize("added", ["a, c", "c, a"])
def test_a_matrix_product_becomes_a_gemm(added, outputs):
    graph = parse_text(f"""agraph (float[3,2] x) => (float[3,2] y)
        <float[2,2] w = {{1, 2, 3, 4}}, float[1,2] c = {{5, 6}}>
        {{ a = MatMul(x, w)  y = Add({added}) }}""")
    before = outputs(graph)["y"]
    assert fuse_affine(graph) == 1
    assert [node.op_type for node in graph.nodes()] == ["Gemm"]
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "w", "c", "y"),
    [
        ("float[1,3,2] x", "float[2,2] w = {1, 2, 3, 4}", "float[2] c = {5, 6}", "float[1,3,2] y"),
        ("float[3,2] x", "float[2] w = {1, 2}", "float[3] c = {5, 6, 7}", "float[3] y"),
        ("float[3,2] x", "float[1,2,2] w = {1, 2, 3, 4}", "float[2] c = {5, 6}", "float[1,3,2] y"),
        ("float[3,2] x", "float[2,2] w = {1, 2, 3, 4}", "float[3,1] c = {5, 6, 7}", "float[3,2] y"),
    ],
    ids=["rank 3", "a vector on the right", "rank 3 on the right", "one number per row"],
)
def test_a_product_that_is_no_gemm_is_left_alone(x, w, c, y):
    assert fused(f"agraph ({x}) => ({y}) <{w}, {c}> {{ a = MatMul(x, w)  y = Add(a, c) }}") == 0
