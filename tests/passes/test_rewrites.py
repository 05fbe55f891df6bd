"""The smaller rewrites: lone normalizations, moves, plain arithmetic, recurrent nodes, Gemm."""

import re

import numpy as np
import pytest

from npumake.graph import array, attribute, origin, parse_text
from npumake.passes import optimized
from npumake.passes.batch_norm_to_conv import batch_norm_to_conv
from npumake.passes.fuse_affine import fuse_affine
from npumake.passes.fuse_ahead import fuse_ahead
from npumake.passes.gemm_to_conv import gemm_to_conv
from npumake.passes.merge_moves import merge_reshapes, merge_transposes
from npumake.passes.plain_arithmetic import plain_arithmetic
from npumake.passes.plain_clamps import plain_clamps
from npumake.passes.unroll_recurrent import hindrance, unroll_recurrent

NORM = """float[4] g = {0.5, 1, 2, -1}, float[4] b = {1, 2, 3, 4},
    float[4] m = {0.1, 0.2, 0.3, 0.4}, float[4] v = {1, 2, 0.5, 4}"""


def of(body: str, constants: str = NORM, x: str = "1,4,3,3", y: str = "1,4,3,3"):
    return parse_text(f"a (float[{x}] x) => (float[{y}] y) <{constants}> {{ {body} }}")


def assert_kept(graph, run_pass, outputs, left):
    before = outputs(graph)["y"]
    assert run_pass(graph) > 0
    assert [node.op_type for node in graph.nodes()] == left
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=1e-5, atol=1e-6)


# -- BatchNormalization behind nothing linear --------------------------------------------------


@pytest.mark.parametrize("dims", ["1,4,3,3", "2,4,5", "1,4,2,2,2"])
def test_a_lone_normalization_is_a_depthwise_convolution_called_as_it_was(dims, outputs):
    graph = of("y = BatchNormalization(x, g, b, m, v)", x=dims, y=dims)
    assert_kept(graph, batch_norm_to_conv, outputs, ["Conv"])
    assert (graph.nodes()[0].name, attribute(graph.nodes()[0], "group")) == ("y", 4)


def test_a_lone_normalization_of_a_matrix_is_a_product_and_a_sum(outputs):
    graph = of("y = BatchNormalization(x, g, b, m, v)", x="3,4", y="3,4")
    assert_kept(graph, batch_norm_to_conv, outputs, ["Mul", "Add"])
    assert [origin(node) for node in graph.nodes()] == [("y",), ("y",)]


def test_a_normalization_of_what_a_pass_has_just_made_is_told_its_rank(outputs):
    graph = of(
        "c, d = Split<axis=2>(x)  e = BatchNormalization(c, g, b, m, v)  y = Add(e, d)",
        x="1,4,6,4",
        y="1,4,3,4",
    )
    assert_kept_by_all(graph, outputs, ["Slice", "Slice", "Conv", "Add"])


def test_a_normalization_that_moves_behind_a_convolution_later_is_still_fused(outputs):
    graph = of(
        "c = Conv<group=4>(x, w)  r = Transpose<perm=[0,1,3,2]>(c)"
        "  s = Transpose<perm=[0,1,3,2]>(r)  y = BatchNormalization(s, g, b, m, v)",
        f"{NORM}, float[4,1,1,1] w = {{1, 2, 3, 4}}",
    )
    assert_kept_by_all(graph, outputs, ["Conv"])


def assert_kept_by_all(graph, outputs, left):
    better = optimized(graph)
    assert [node.op_type for node in better.nodes()] == left
    np.testing.assert_allclose(outputs(better)["y"], outputs(graph)["y"], rtol=1e-5, atol=1e-5)


# -- ConvTranspose -----------------------------------------------------------------------------


@pytest.mark.parametrize("group", [1, 2, 4])
def test_a_transposed_convolution_scales_the_output_channels_of_each_group(group, outputs):
    count = 16 * 4 // group
    numbers = ", ".join(f"{value:.3f}" for value in np.linspace(-1, 1, count))
    graph = of(
        f"a = ConvTranspose<group={group}>(x, w)  y = BatchNormalization(a, g, b, m, v)",
        f"{NORM}, float[4,{4 // group},2,2] w = {{{numbers}}}",
        y="1,4,4,4",
    )
    assert_kept(graph, fuse_affine, outputs, ["ConvTranspose"])


# -- what is not affine ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("c = Conv(x, w)  y = Div(k, c)", "float k = {2}"),
        ("c = Conv(x, w)  y = Div(c, k)", "float k = {0}"),
        ("c = Conv(x, w)  y = Mul(c, c)", "float k = {2}"),
        ("c = Conv(x, w)  d = Mul(c, k)  y = Identity(d)", "float[2,1,1,1] k = {1, 2}"),
        ("c = Conv(x, w)  y = Mul(c, k)", "float[3] k = {1, 2, 3}"),
    ],
    ids=["a constant divided by it", "divided by zero", "squared", "it grows", "along the width"],
)
def test_what_is_not_affine_per_channel_is_left_alone(body, constants):
    weight = f"float[4,1,1,1] w = {{1, 2, 3, 4}}, {constants}"
    body = body.replace("Conv(", "Conv<group=4>(")
    assert fuse_affine(of(body, weight, y="N,4,3,3")) == 0


# -- moves in a row ----------------------------------------------------------------------------


def test_the_last_of_two_transposes_does_both(outputs):
    body = "t = Transpose<perm=[2,0,1]>(x)  y = Transpose<perm=[1,0,2]>(t)"
    graph = of(body, "", "2,3,4", "2,4,3")
    assert_kept(graph, merge_transposes, outputs, ["Transpose"])
    assert attribute(graph.nodes()[0], "perm") == (0, 2, 1)


def test_a_reshape_that_is_read_elsewhere_stays_for_its_reader(outputs):
    graph = parse_text("""a (float[2,6] x) => (float[12] y, float[3,4] z)
        <int64[2] s = {3, 4}, int64[1] f = {-1}> {
        z = Reshape(x, s)  y = Reshape(z, f) }""")
    assert_kept(graph, merge_reshapes, outputs, ["Reshape", "Reshape"])
    assert [node.inputs[0].name for node in graph.nodes()] == ["x", "x"]


def test_an_empty_tensor_is_not_reshaped_anew():
    graph = of("r = Reshape(x, s)  y = Flatten(r)", "int64[2] s = {0, 2}", "0,2", "N,M")
    assert merge_reshapes(graph) == 0


# -- plain arithmetic --------------------------------------------------------------------------


@pytest.mark.parametrize("c", ["0", "1e-39"])
def test_what_has_no_reciprocal_stays_a_division(c):
    assert plain_arithmetic(of("y = Div(x, c)", f"float c = {{{c}}}")) == 0


def test_integers_are_divided_as_they_were():
    text = "a (int64[2] x) => (int64[2] y) <int64 c = {2}> { y = Div(x, c) }"
    assert plain_arithmetic(parse_text(text)) == 0


@pytest.mark.parametrize(("dtype", "changed"), [("int64", 1), ("float", 0)])
def test_an_integer_times_zero_is_zero_and_a_real_number_may_be_nan(dtype, changed):
    body = "z = Mul(x, c) y = Neg(z)"
    text = f"a ({dtype}[2] x) => ({dtype}[2] y) <{dtype} c = {{0}}> {{ {body} }}"
    assert plain_arithmetic(parse_text(text).with_shapes()) == changed


# -- before a convolution ----------------------------------------------------------------------

AHEAD = f"""float g = {{0.5}}, float[1,4,1,1] c = {{1, 2, 3, 4}}, float none = {{0}},
    float[4,1,1,1] w = {{1, 2, 3, 4}}, float[4,1,3,3] k = {{{", ".join(map(str, range(36)))}}}"""


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("a = Mul(s, g)  b = Add(a, c)  y = Conv<group=4>(b, w)", ["Sigmoid", "Conv"]),
        ("a = Mul(s, g)  b = Add(a, c)  y = Conv<group=4, pads=[1,1,1,1]>(b, k)",
         ["Sigmoid", "Add", "Conv"]),
    ],
    ids=["not padded", "padded"],
)  # fmt: skip
def test_a_product_and_a_sum_are_done_by_the_convolution_behind(body, left, outputs):
    graph = of(f"s = Sigmoid(x)  {body}", AHEAD)
    assert_kept(graph, fuse_ahead, outputs, left)
    assert {"b", "y"} <= set(origin(graph.nodes()[-1]))


@pytest.mark.parametrize(
    "body",
    [
        "a = Mul(x, g)  b = Add(a, c)  y = Conv<group=4>(b, w)",
        "s = Sigmoid(x)  a = Mul(s, c)  y = Conv<group=4>(a, w)",
        "s = Sigmoid(x)  a = Mul(s, g)  b = Conv<group=4>(a, w)  y = Mul(a, b)",
        "s = Sigmoid(x)  a = Add(s, c)  y = Conv<group=4, pads=[1,1,1,1]>(a, k)",
        "s = Sigmoid(x)  b = Mul(s, none)  a = Add(b, c)  y = Conv<group=4, pads=[1,1,1,1]>(a, k)",
    ],
    ids=["of what is fed", "by channel", "read elsewhere", "a padded sum", "of nothing"],
)
def test_what_no_convolution_can_do_is_left_before_it(body):
    assert fuse_ahead(of(body, AHEAD)) == 0


# -- clamps ------------------------------------------------------------------------------------


def test_a_maximum_and_a_minimum_are_one_clamp(outputs):
    body = "a = Max(low, x)  b = Min(a, high)  y = Clip(b, more, )"
    bounds = "float low = {-0.5}, float[1] high = {0.5}, float more = {0.1}"
    graph = of(body, bounds)
    assert_kept(graph, plain_clamps, outputs, ["Clip"])
    assert [array(value) for value in graph.nodes()[0].inputs[1:]] == [np.float32(0.1), 0.5]


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("y = Max(x, c)", "float[3] c = {0, 1, 2}"),
        ("y = Max(x, c, c)", "float c = {0}"),
        ("a = Neg(x)  y = Max(x, a)", ""),
        ("a = Clip(x, , c)  y = Clip(a, d, )", "float c = {0}, float d = {1}"),
        ("a = Clip(x, c, )  y = Mul(a, c)  z = Clip(a, , d)", "float c = {0}, float d = {1}"),
    ],
    ids=["by channel", "of three", "of two tensors", "to a single number", "read elsewhere"],
)
def test_what_is_no_one_clamp_is_left_alone(body, constants):
    assert plain_clamps(of(body, constants)) == 0


# -- LSTM, GRU, RNN step by step -------------------------------------------------------------


RECURRENT = {
    "a state of its own": ("", 1, ""),
    "a state that is given": ("", 1, ", , , h0, c0"),
    "a bias alone": ("", 1, ", b"),
    "backwards": (', direction = "reverse"', 1, ""),
    "both ways": (', direction = "bidirectional"', 2, ", b"),
    "one step": ("", 1, ", , , h0, c0"),
}
KINDS = {
    "LSTM": (4, ""),
    "LSTM of other functions": (4, ', activations = ["HardSigmoid", "Softsign", "Relu"]'),
    "GRU": (3, ""),
    "GRU that resets behind": (3, ", linear_before_reset = 1"),
    "GRU of other functions": (3, ', activations = ["HardSigmoid", "Relu"]'),
    "RNN": (1, ""),
    "RNN of another function": (1, ', activations = ["Softplus"]'),
}


@pytest.mark.parametrize("named", KINDS)
@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_node_is_the_sums_and_functions_of_its_steps(named, name, outputs):
    (said, ways, given), (gates, told) = RECURRENT[name], KINDS[named]
    kind, has_cell = named.split()[0], named.startswith("LSTM")
    if ways == 2:
        told = re.sub(r"\[(.*)\]", r"[\1, \1]", told)
    steps, wide = 1 if name == "one step" else 3, 2 * gates
    dims = f"float[{ways},{wide}"
    held = f"{dims},4] w = {{{drawn(ways * wide * 4)}}}, {dims},2] r = {{{drawn(ways * wide * 2)}}}"
    held += f", float[{ways},{2 * wide}] b = {{{drawn(ways * 2 * wide)}}}"
    state = f"float[{ways},5,2]"
    cells = (f", {state} c0", f", {state} c", ", c") if has_cell else ("", "", "")
    given = given if has_cell else given.removesuffix(", c0")
    text = f"""agraph (float[{steps},5,4] x, {state} h0{cells[0]})
        => (float[{steps},{ways},5,2] y, {state} h{cells[1]}) <{held}> {{
        y, h{cells[2]} = {kind}<hidden_size=2{said}{told}>(x, w, r{given}) }}"""
    graph = parse_text(text).with_shapes()
    before = outputs(graph)
    assert unroll_recurrent(graph) == 1
    after = outputs(graph.with_shapes())
    for each, wanted in before.items():
        np.testing.assert_allclose(after[each], wanted, rtol=1e-5, atol=1e-6)
    assert graph.nodes(kind) == []
    assert unroll_recurrent(graph) == 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("GRU<hidden_size=2, clip=1.0>(x, w, r)", "it has clip"),
        ('GRU<hidden_size=2, activations=["Affine", "Tanh"]>(x, w, r)', "it has Affine"),
        ("GRU<hidden_size=2>(x, v, r)", "its weights are computed"),
        ("GRU<hidden_size=2>(x, w, r, , l)", "it has lengths or peepholes"),
        ("GRU<hidden_size=2, layout=1>(x, w, r)", "it has layout"),
    ],
)
def test_what_hinders_a_recurrent_node_is_said_and_it_stays(given, why):
    text = f"""agraph (float[3,5,4] x, float[1,6,4] v, int32[5] l) => (y)
        <float[1,6,4] w = {{{drawn(24)}}}, float[1,6,2] r = {{{drawn(12)}}}> {{ y = {given} }}"""
    graph = parse_text(text).with_shapes()
    assert unroll_recurrent(graph) == 0
    (node,) = graph.nodes("GRU")
    assert hindrance(node) == why
    assert hindrance(node, 2) == "it has 3 steps; more than 2 are not unrolled"


def drawn(count):
    return ", ".join(f"{x:.3f}" for x in np.random.default_rng(count).normal(size=count))


# -- Gemm as Conv ------------------------------------------------------------------------------


@pytest.mark.parametrize("gemm", ["Gemm(x, w)", "Gemm(x, w, c)", "Gemm<transB=1>(x, u)"])
def test_a_gemm_is_a_convolution_of_one_pixel(gemm, outputs):
    constants = "float[3,2] w = {1,2,3,4,5,6}, float[2,3] u = {1,2,3,4,5,6}, float[2] c = {7,8}"
    graph = of(f"y = {gemm}  z = Relu(y)", constants, "5,3", "5,2")
    assert_kept(graph, gemm_to_conv, outputs, ["Reshape", "Conv", "Reshape", "Relu"])
    assert graph.find("y")[0].op_type == "Conv"
    assert array(graph.nodes("Conv")[0].inputs[1]).shape == (2, 3, 1, 1)
    assert gemm_to_conv(graph) == 0
