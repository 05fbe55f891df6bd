"""Functions recognized by what they compute, in every spelling, and those that only come close."""

import numpy as np
import pytest

from npumake.graph import Graph, attribute, parse_text
from npumake.passes.recognize_functions import recognize_functions

CONSTANTS = """float three = {3}, float six = {6}, float zero = {0}, float one = {1},
    float half = {0.5}, float sixth = {0.16666667}, float root2 = {1.4142135}, float two = {2},
    float iroot2 = {0.70710678}, float k = {0.7978846}, float c = {0.044715}, float cube = {3},
    float rough = {0.7071}, float[4] many = {3, 3, 3, 3}, float high = {6.5}"""


def of(body: str, opset: int = 20, outputs: str = "float[2,4] y") -> Graph:
    header = f'<ir_version: 9, opset_import: ["" : {opset}]>'
    return parse_text(f"{header} a (float[2,4] x) => ({outputs}) <{CONSTANTS}> {{ {body} }}")


ERF = "a = Div(x, root2)  e = Erf(a)  p = Add(e, one)"
TANH = "a = Pow(x, cube)  b = Mul(c, a)  d = Add(x, b)  f = Mul(d, k)  g = Tanh(f)  p = Add(one, g)"
SPELLINGS = {
    "swish, divided last": (
        "HardSwish",
        "a = Add(x, three)  b = Clip(a, zero, six)  m = Mul(x, b)  y = Div(m, six)",
    ),
    "swish, divided first": (
        "HardSwish",
        "a = Add(three, x)  b = Clip(a, zero, six)  m = Div(b, six)  y = Mul(m, x)",
    ),
    "swish, multiplied": (
        "HardSwish",
        "a = Mul(x, sixth)  b = Add(a, half)  m = Clip(b, zero, one)  y = Mul(x, m)",
    ),
    "swish, from minimum and maximum": (
        "HardSwish",
        "a = Add(x, three)  b = Max(a, zero)  m = Min(b, six)  n = Mul(x, m)  y = Mul(n, sixth)",
    ),
    "swish, from a hard sigmoid": (
        "HardSwish",
        "a = HardSigmoid<alpha=0.16666667, beta=0.5>(x)  y = Mul(x, a)",
    ),
    "gate": ("HardSigmoid", "a = Add(x, three)  b = Clip(a, zero, six)  y = Div(b, six)"),
    "gate of its own slope": (
        "HardSigmoid",
        "a = Mul(x, half)  b = Add(one, a)  d = Clip(b, zero, two)  y = Mul(d, half)",
    ),
    "gelu, halved last": ("Gelu", f"{ERF}  m = Mul(x, p)  y = Mul(m, half)"),
    "gelu, halved first": ("Gelu", f"{ERF}  h = Mul(x, half)  y = Mul(h, p)"),
    "gelu, halved inside": ("Gelu", f"{ERF}  h = Mul(half, p)  y = Mul(x, h)"),
    "gelu, multiplied": (
        "Gelu",
        "a = Mul(x, iroot2)  e = Erf(a)  p = Add(e, one)  m = Mul(x, p)  y = Div(m, two)",
    ),
    "gelu by tanh": ("Gelu", f"{TANH}  m = Mul(x, p)  y = Mul(half, m)"),
    "gelu by tanh, without a power": (
        "Gelu",
        "q = Mul(x, x)  r = Mul(q, c)  s = Add(r, one)  t = Mul(x, s)  u = Mul(t, k)  v = Tanh(u)"
        "  p = Add(v, one)  h = Mul(x, half)  y = Mul(h, p)",
    ),
    "mish": ("Mish", "a = Softplus(x)  b = Tanh(a)  y = Mul(x, b)"),
}


@pytest.mark.parametrize(("op_type", "body"), SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_becomes_one_node(op_type, body, outputs):
    graph = of(body)
    before = outputs(graph)["y"]
    assert recognize_functions(graph) == 1
    assert [(node.op_type, node.name) for node in graph.nodes()] == [(op_type, "y")]
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=2e-6, atol=2e-7)


def test_a_gelu_by_tanh_says_so():
    graph = of(SPELLINGS["gelu by tanh"][1])
    recognize_functions(graph)
    assert attribute(graph.nodes()[0], "approximate") == "tanh"


def test_a_hard_sigmoid_has_the_slope_and_offset_it_had():
    graph = of(SPELLINGS["gate of its own slope"][1])
    recognize_functions(graph)
    found = [attribute(graph.nodes()[0], name) for name in ("alpha", "beta")]
    assert found == pytest.approx([0.25, 0.5])


@pytest.mark.parametrize(
    ("body", "opset"),
    [
        (f"{ERF.replace('Div(x, root2)', 'Mul(x, rough)')}  m = Mul(x, p)  y = Mul(m, half)", 20),
        ("a = Add(x, three)  b = Clip(a, zero, high)  m = Mul(x, b)  y = Div(m, six)", 20),
        ("a = Add(x, many)  b = Clip(a, zero, six)  y = Mul(x, b)", 20),
        ("a = Sigmoid(x)  y = Mul(x, a)", 20),
        ("a = Mul(x, half)  b = Sub(one, a)  d = Clip(b, zero, two)  y = Mul(d, half)", 20),
        (SPELLINGS["gelu, halved last"][1], 19),
        (SPELLINGS["swish, from a hard sigmoid"][1], 13),
        (SPELLINGS["mish"][1], 17),
    ],
    ids=["a rough constant", "another bound", "a constant per channel", "a SiLU",
         "a falling HardSigmoid, which TensorFlow Lite lacks",
         "Gelu before opset 20", "HardSwish before opset 14", "Mish before opset 18"],
)  # fmt: skip
def test_what_only_comes_close_or_has_no_name_is_left_alone(body, opset):
    assert recognize_functions(of(body, opset)) == 0


def test_what_somebody_else_reads_stays():
    body = "a = Add(x, three)  b = Clip(a, zero, six)  m = Mul(x, b)  y = Div(m, six)  z = Abs(m)"
    graph = of(body, outputs="float[2,4] y, float[2,4] z")
    recognize_functions(graph)
    assert [node.op_type for node in graph.nodes()][-3:] == ["Mul", "Div", "Abs"]


def test_a_function_of_something_computed_is_recognized_at_its_root():
    graph = of("r = Relu(x)  n = Neg(r)  a = HardSigmoid<alpha=0.16666667, beta=0.5>(n)"
               "  y = Mul(n, a)")  # fmt: skip
    assert recognize_functions(graph) == 1
    assert [node.op_type for node in graph.nodes()] == ["Relu", "Neg", "HardSwish"]
