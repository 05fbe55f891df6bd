"""LayerNormalization recognized by what the nodes compute, in every spelling."""

import numpy as np
import pytest

from npumake.graph import Graph, array, attribute, parse_text
from npumake.passes import optimized
from npumake.passes.recognize_layer_norms import recognize_layer_norms

CONSTANTS = """float[4] g = {1, 2, 3, 4}, float[1,1,4] b = {0, 1, -1, 2}, float e = {0.01},
    float[1] quarter = {0.25}, float zero = {0}, float two = {2}, float half = {0.5},
    float[4] h = {2, 2, 2, 2}, int64[1] last = {2}, int64[3] kept = {2, 3, 1}, float four = {4},
    float third = {0.3333333}, float[1] big = {3}"""


def of(body: str, outputs: str = "float[2,3,4] y") -> Graph:
    header = '<ir_version: 9, opset_import: ["" : 17]>'
    return parse_text(f"{header} a (float[2,3,4] x) => ({outputs}) <{CONSTANTS}> {{ {body} }}")


MEAN = "m = ReduceMean<axes=[-1]>(x)"
CENTERED = f"{MEAN}  d = Sub(x, m)"
VARIANCE = f"{CENTERED}  s = Mul(d, d)  v = ReduceMean<axes=[2]>(s)"
ROOT = f"{VARIANCE}  w = Add(v, e)  r = Sqrt(w)"
TAIL = "h1 = Mul(n, g)  y = Add(h1, b)"
FLAX = """a = ReduceSum<keepdims=0>(x, last)  m = Mul(a, quarter)  q = Mul(x, x)
    c = ReduceSum<keepdims=0>(q, last)  t = Mul(c, quarter)  u = Mul(m, m)  o = Sub(t, u)
    f = Clip(o, zero)  i = Reshape(f, kept)  w = Add(i, e)  r = Sqrt(w)  z = Reciprocal(r)
    k = Mul(z, g)  j = Reshape(m, kept)  d = Sub(x, j)  n = Mul(d, k)  y = Add(n, b)"""
NORMS = {
    "PyTorch": f"{ROOT}  n = Div(d, r)  {TAIL}",
    "a power": f"{ROOT}  n = Div(d, r)  {TAIL}".replace("Mul(d, d)", "Pow(d, two)"),
    "the sum of squares": f"{CENTERED}  s = ReduceSumSquare<axes=[-1]>(d)  v = Mul(s, quarter)"
    f"  w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  {TAIL}",
    "a product with itself": f"{ROOT}  n = Div(d, r)  {TAIL}".replace("Mul(d, d)", "Mul(d, x)"),
    "the other way round": f"{ROOT}  n = Div(d, r)  {TAIL}".replace("Sub(x, m)", "Sub(m, x)"),
    "a power of a half": f"{VARIANCE}  w = Add(v, e)  r = Pow(w, half)  n = Div(d, r)  {TAIL}",
    "TensorFlow": f"{ROOT}  i = Reciprocal(r)  k = Mul(i, g)  n = Mul(x, k)  o = Mul(m, k)"
    "  c = Sub(b, o)  y = Add(n, c)",
    "Flax": FLAX,
    "no bias": f"{ROOT}  n = Div(d, r)  y = Mul(n, g)",
    "two scales": f"{ROOT}  n = Div(d, r)  {TAIL.replace('y', 'p')}  y = Mul(p, h)",
}


@pytest.mark.parametrize("body", NORMS.values(), ids=NORMS)
def test_every_spelling_of_a_layer_normalization_becomes_one_node(body, outputs):
    graph = of(body)
    before = outputs(graph)["y"]
    assert recognize_layer_norms(graph) == 1
    (node,) = graph.nodes()
    assert (node.op_type, node.name) == ("LayerNormalization", "y")
    assert attribute(node, "epsilon") == np.float32(0.01)
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=2e-5, atol=2e-6)


def test_open_dimensions_of_other_axes_do_not_matter():
    text = f"{ROOT}  n = Div(d, r)  {TAIL}"
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[N,T,4] x) => (float[N,T,4] y)
        <{CONSTANTS}> {{ {text} }}"""
    ).with_shapes()
    assert recognize_layer_norms(graph) == 1


def test_scale_and_bias_have_the_bits_of_the_nodes():
    generator = np.random.default_rng(3)
    scale, bias = generator.normal(size=(2, 4)).astype(np.float32)
    text = f"{ROOT}  n = Div(d, r)  {TAIL}"
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[2,3,4] x) => (float[2,3,4] y)
        <float[4] g = {{{", ".join(map(repr, scale.tolist()))}}}, float e = {{0.00001}},
         float[4] b = {{{", ".join(map(repr, bias.tolist()))}}}> {{ {text} }}"""
    )
    assert recognize_layer_norms(graph) == 1
    (node,) = graph.nodes()
    for value, expected in zip(node.inputs[1:], (scale, bias), strict=True):
        assert np.array_equal(array(value), expected)


OTHERS = {
    "another axis": f"{ROOT}  n = Div(d, r)  {TAIL}".replace("axes=[-1]", "axes=[1]"),
    "n - 1": f"{CENTERED}  s = ReduceSumSquare<axes=[-1]>(d)  v = Mul(s, third)  w = Add(v, e)"
    f"  r = Sqrt(w)  n = Div(d, r)  {TAIL}",
    "an epsilon behind the root": f"{VARIANCE}  q = Sqrt(v)  r = Add(q, e)  n = Div(d, r)  {TAIL}",
    "the mean of magnitudes": f"{CENTERED}  s = Abs(d)  v = ReduceMean<axes=[2]>(s)"
    f"  r = Add(v, e)  n = Div(d, r)  {TAIL}",
    "no scale": f"{ROOT}  y = Div(d, r)",
    "a scale of other rows": f"{ROOT}  n = Div(d, r)  y = Mul(n, x)",
    "a softmax": "p = Exp(x)  s = ReduceSum(p, last)  y = Div(p, s)",
    "a share": "s = ReduceSum(x, last)  y = Div(x, s)",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_is_another_function_is_left_alone(body):
    assert recognize_layer_norms(of(body)) == 0


def test_what_is_read_inside_is_left_alone():
    body = f"{ROOT}  n = Div(d, r)  {TAIL}"
    assert recognize_layer_norms(of(body, "float[2,3,4] y, float[2,3,1] v")) == 0
    both = "float[2,3,4] y, float[2,3,4] z"
    assert recognize_layer_norms(of(f"{body}  z = Neg(n)", both)) == 0


def test_rows_that_line_up_with_another_axis_are_no_rows():
    """A mean of shape (4, 4) is subtracted along the last axis, and was taken over that."""
    body = f"{ROOT}  n = Div(d, r)  {TAIL}".replace("<axes=[-1]>", "<axes=[-1], keepdims=0>")
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[4,4,4] x) => (float[4,4,4] y)
        <{CONSTANTS}> {{ {body} }}"""
    )
    assert recognize_layer_norms(graph) == 0


def test_all_passes_keep_the_outputs(outputs):
    graph = of(f"{FLAX.replace('y = Add', 'p = Add')}  y = Relu(p)")
    small = optimized(graph)
    assert [node.op_type for node in small.nodes()] == ["LayerNormalization", "Relu"]
    np.testing.assert_allclose(outputs(small)["y"], outputs(graph)["y"], rtol=1e-5, atol=1e-6)
