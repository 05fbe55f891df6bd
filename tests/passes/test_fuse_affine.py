"""BatchNormalization into the convolution or Gemm before it."""

import numpy as np
import pytest

from npumake.graph import array, parse_text
from npumake.passes.fuse_affine import fuse_affine

NORM = """float[4] g = {0.5, 1, 2, -1}, float[4] b = {1, 2, 3, 4},
    float[4] m = {0.1, 0.2, 0.3, 0.4}, float[4] v = {1, 2, 0.5, 4}"""
BN = "BatchNormalization(a, g, b, m, v)"


def numbers(count: int) -> str:
    return ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, count))


def conv(body: str, output: str = "float[1,4,5,5] y", weight: str = "float[4,2,1,1]") -> str:
    count = 4 if weight == "float[4,1,1,1]" else 8
    return f"""agraph (float[1,2,5,5] x) => ({output})
        <{weight} w = {{{numbers(count)}}}, {NORM}> {{ {body} }}"""


def assert_fused(text: str, outputs, left: list[str]) -> None:
    graph = parse_text(text)
    before = outputs(graph)["y"]
    assert fuse_affine(graph) == 1
    assert [node.op_type for node in graph.nodes()] == left
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=1e-5, atol=1e-6)


def test_a_grouped_convolution_is_fused(outputs):
    text = conv(f"a = Conv<group=2>(x, w)  y = {BN}", weight="float[4,1,1,1]")
    assert_fused(text, outputs, ["Conv"])


def test_a_convolution_with_a_bias_is_fused(outputs):
    assert_fused(conv(f"a = Conv(x, w, b)  y = {BN}"), outputs, ["Conv"])


def test_another_epsilon_counts(outputs):
    body = "a = Conv(x, w)  y = BatchNormalization<epsilon = 0.5>(a, g, b, m, v)"
    assert_fused(conv(body), outputs, ["Conv"])


def test_a_normalization_that_is_a_graph_output_keeps_its_name(outputs):
    text = conv(f"a = Conv(x, w)  y = {BN}  z = Relu(y)", "float[1,4,5,5] y, float[1,4,5,5] z")
    assert_fused(text, outputs, ["Conv", "Relu"])


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("bias", ["", ", b", ", k"])
def test_a_gemm_is_fused_whichever_way_its_weight_lies(transposed, bias, outputs):
    dims = "4,3" if transposed else "3,4"
    text = f"""agraph (float[2,3] x) => (float[2,4] y)
        <float[{dims}] w = {{{numbers(12)}}}, float k = {{3}}, {NORM}>
        {{ a = Gemm<transB={transposed}>(x, w{bias})  y = {BN} }}"""
    assert_fused(text, outputs, ["Gemm"])


@pytest.mark.parametrize(
    "gemm", ["Gemm<alpha=0.5>(x, w, b)", "Gemm<beta=0.5>(x, w, b)", "Gemm(x, w, r)"]
)
def test_a_gemm_that_scales_or_adds_a_matrix_is_left_alone(gemm):
    text = f"""agraph (float[2,3] x) => (float[2,4] y)
        <float[3,4] w = {{{numbers(12)}}}, float[2,4] r = {{{numbers(8)}}}, {NORM}>
        {{ a = {gemm}  y = {BN} }}"""
    assert fuse_affine(parse_text(text)) == 0


def test_a_shared_convolution_is_left_alone():
    text = conv(f"a = Conv(x, w)  n = {BN}  y = Add(a, n)")
    assert fuse_affine(parse_text(text)) == 0


def test_a_convolution_that_is_a_graph_output_is_left_alone():
    text = conv(f"a = Conv(x, w)  y = {BN}", "float[1,4,5,5] a, float[1,4,5,5] y")
    assert fuse_affine(parse_text(text)) == 0


def test_a_computed_weight_is_left_alone():
    text = conv(f"k = Relu(w)  a = Conv(x, k)  y = {BN}")
    assert fuse_affine(parse_text(text)) == 0


def test_a_normalization_that_trains_is_left_alone():
    body = "a = Conv(x, w)  y, p, q = BatchNormalization<training_mode=1>(a, g, b, m, v)"
    assert fuse_affine(parse_text(conv(body))) == 0


def test_two_convolutions_may_share_a_weight(outputs):
    text = conv(f"a = Conv(x, w)  n = {BN}  c = Conv(x, w)  y = Add(n, c)")
    assert_fused(text, outputs, ["Conv", "Conv", "Add"])


def test_double_precision_stays_double_precision(outputs):
    text = f"""agraph (float[2,3] x) => (float[2,4] y) <float[3,4] w = {{{numbers(12)}}}, {NORM}>
        {{ a = Gemm(x, w)  y = {BN} }}"""
    graph = parse_text(text.replace("float", "double"))
    assert fuse_affine(graph) == 1
    assert [array(value).dtype for value in graph.nodes()[0].inputs[1:]] == [np.float64] * 2
    assert outputs(graph)["y"].dtype == np.float64
