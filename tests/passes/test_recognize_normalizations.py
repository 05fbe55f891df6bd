"""Softmax and LayerNormalization recognized by what they compute, in every spelling."""

import numpy as np
import pytest

from npumake.graph import Graph, array, attribute, parse_text
from npumake.passes import optimized
from npumake.passes.recognize_normalizations import recognize_normalizations

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
    assert recognize_normalizations(graph) == 1
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
    assert recognize_normalizations(graph) == 1


def test_scale_and_bias_have_the_bits_of_the_nodes():
    generator = np.random.default_rng(3)
    scale, bias = generator.normal(size=(2, 4)).astype(np.float32)
    text = f"{ROOT}  n = Div(d, r)  {TAIL}"
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[2,3,4] x) => (float[2,3,4] y)
        <float[4] g = {{{", ".join(map(repr, scale.tolist()))}}}, float e = {{0.00001}},
         float[4] b = {{{", ".join(map(repr, bias.tolist()))}}}> {{ {text} }}"""
    )
    assert recognize_normalizations(graph) == 1
    (node,) = graph.nodes()
    for value, expected in zip(node.inputs[1:], (scale, bias), strict=True):
        assert np.array_equal(array(value), expected)


APART = "m = ReduceMax<{}>(x)  d = Sub(x, m)  p = Exp(d)  s = ReduceSum(p, {axis})"
SOFTMAXES = {
    "with its maximum": f"{APART}  y = Div(p, s)",
    "without": "p = Exp(x)  s = ReduceSum(p, {axis})  y = Div(p, s)",
    "by a factor": "p = Exp(x)  s = ReduceSum(p, {axis})  i = Reciprocal(s)  y = Mul(p, i)",
    "from its logarithm": f"{APART}  l = Log(s)  o = Sub(d, l)  y = Exp(o)",
    "without keepdims": "m = ReduceMax<keepdims=0, {}>(x)  u = Unsqueeze(m, {axis})  d = Sub(x, u)"
    "  p = Exp(d)  s = ReduceSum<keepdims=0>(p, {axis})  i = Unsqueeze(s, {axis})  y = Div(p, i)",
}


@pytest.mark.parametrize("body", SOFTMAXES.values(), ids=SOFTMAXES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_spelling_of_a_softmax_becomes_one_node(body, axis, outputs):
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[2,3,4] x) => (float[2,3,4] y)
        <int64[1] along = {{{axis}}}> {{ {body.format(f"axes=[{axis}]", axis="along")} }}"""
    )
    before = outputs(graph)["y"]
    assert recognize_normalizations(graph) == 1
    (node,) = graph.nodes()
    assert (node.op_type, node.name, attribute(node, "axis")) == ("Softmax", "y", axis)
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=2e-6, atol=2e-7)


def test_what_surrounds_a_softmax_stays(outputs):
    graph = of(
        "t = Mul(x, half)  p = Exp(t)  s = ReduceSum(p, last)  o = Div(p, s)  y = Mul(o, two)"
    )
    before = outputs(graph)["y"]
    assert recognize_normalizations(graph) == 1
    assert [node.op_type for node in graph.nodes()] == ["Mul", "Softmax", "Mul"]
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=2e-6)


OTHERS = {
    "another axis": f"{ROOT}  n = Div(d, r)  {TAIL}".replace("axes=[-1]", "axes=[1]"),
    "n - 1": f"{CENTERED}  s = ReduceSumSquare<axes=[-1]>(d)  v = Mul(s, third)  w = Add(v, e)"
    f"  r = Sqrt(w)  n = Div(d, r)  {TAIL}",
    "an epsilon behind the root": f"{VARIANCE}  q = Sqrt(v)  r = Add(q, e)  n = Div(d, r)  {TAIL}",
    "the mean of magnitudes": f"{CENTERED}  s = Abs(d)  v = ReduceMean<axes=[2]>(s)"
    f"  r = Add(v, e)  n = Div(d, r)  {TAIL}",
    "no scale": f"{ROOT}  y = Div(d, r)",
    "a scale of other rows": f"{ROOT}  n = Div(d, r)  y = Mul(n, x)",
    "a clipped sum": "p = Exp(x)  s = ReduceSum(p, last)  t = Max(s, big)  y = Div(p, t)",
    "powers of two": "p = Pow(two, x)  s = ReduceSum(p, last)  y = Div(p, s)",
    "a sum without exponentials": "s = ReduceSum(x, last)  y = Div(x, s)",
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_is_another_function_is_left_alone(body):
    assert recognize_normalizations(of(body)) == 0


def test_what_is_read_inside_is_left_alone():
    body = "p = Exp(x)  s = ReduceSum(p, last)  y = Div(p, s)"
    assert recognize_normalizations(of(body, "float[2,3,4] y, float[2,3,1] s")) == 0
    assert (
        recognize_normalizations(of(f"{body}  z = Neg(p)", "float[2,3,4] y, float[2,3,4] z")) == 0
    )


def test_rows_that_line_up_with_another_axis_are_no_rows():
    """A sum of shape (3, 3) divides along the last axis, not along the one it was taken over."""
    body = "p = Exp(x)  s = ReduceSum<keepdims=0>(p, last)  y = Div(p, s)"
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 17]> a (float[3,3,3] x) => (float[3,3,3] y)
        <int64[1] last = {{2}}> {{ {body} }}"""
    )
    assert recognize_normalizations(graph) == 0


def test_the_whole_pipeline_keeps_its_outputs(outputs):
    norm = FLAX.replace("y = Add", "p1 = Add")
    graph = of(f"{norm}  p = Exp(p1)  l = ReduceSum(p, last)  y = Div(p, l)")
    small = optimized(graph)
    assert [node.op_type for node in small.nodes()] == ["LayerNormalization", "Softmax"]
    np.testing.assert_allclose(outputs(small)["y"], outputs(graph)["y"], rtol=1e-5, atol=1e-6)
