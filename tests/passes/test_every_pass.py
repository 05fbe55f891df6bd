"""What every pass promises, on graphs that together give each of them something to do.

A new pass is tested by being listed in PASSES; a graph that shows it goes into GRAPHS.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import onnx
import pytest

from npumake.graph import Graph, parse_text
from npumake.passes import PASSES, optimized
from npumake.passes.batch_norm_to_conv import batch_norm_to_conv
from npumake.passes.fuse_affine import fuse_affine
from npumake.passes.fuse_ahead import fuse_ahead
from npumake.passes.plain_arithmetic import plain_arithmetic
from npumake.passes.plain_gemm import plain_gemm
from npumake.passes.plain_norms import plain_norms
from npumake.passes.recognize_functions import recognize_functions
from npumake.passes.recognize_layer_norms import recognize_layer_norms

ROUNDS = (
    batch_norm_to_conv,
    fuse_affine,
    fuse_ahead,
    recognize_layer_norms,
    plain_arithmetic,
    plain_norms,
    plain_gemm,
    recognize_functions,
)  # a sum in another order; the others are exact


def numbers(count: int, low: float = -1.0, high: float = 1.0) -> str:
    return ", ".join(f"{value:.4f}" for value in np.linspace(low, high, count))


NORM = (
    f"float[2] gamma = {{{numbers(2, 0.5, 2)}}}, float[2] beta = {{{numbers(2)}}}, "
    f"float[2] mean = {{{numbers(2)}}}, float[2] var = {{{numbers(2, 0.1, 3)}}}"
)
WEIGHT = f"float[2,2,3,3] w = {{{numbers(36)}}}"
IMAGE = "agraph (float[1,2,6,7] x) => (float[1,2,N,M] y)"

GRAPHS = {
    "bounds of shape [1], one for two clamps": """
        agraph (float[1,4] x) => (float[1,4] y, float[1,4] z)
        <float[1] l = {-0.25}, float[1] h = {0.5}> {
        c = Clip(x, l, h)  y = Neg(c)  z = Clip(x, l) }""",
    "norms with one number, and with axes of size 1": """
        <ir_version: 10, opset_import: ["" : 20]>
        agraph (float[2,3,4] x) => (float[2,3,4] y)
        <float[1] g = {0.5}, float b = {0.25}, float[1,1,4] h = {1, 2, 3, 4}, float[3,1] k =
         {0.5, -1, 2}> {
        a = LayerNormalization(x, g, b)  c = LayerNormalization(a, h)
        y = LayerNormalization<axis=1>(c, k, b) }""",
    "a scale of a normalization in codes": """agraph (float[1,2,3,3] x) => (float[1,2,3,3] y)
        <int8[2] g = {50, 100}, float s = {0.02}, int8 z = {0}, float[2] b = {1, 2},
         float[2] m = {0, 1}, float[2] v = {1, 4}> {
        d = DequantizeLinear(g, s, z)  y = BatchNormalization(x, d, b, m, v) }""",
    "an output of constants": """agraph (float[1,4] x) => (float[1,4] y, float[2] z)
        <float[2] c = {1, 2}> { y = Relu(x)  z = Add(c, c) }""",
    "a part of no elements": """agraph (float[1,4] x) => (float[1,4] y)
        <int64[1] a = {1}, int64[1] zero = {0}, int64[1] four = {4}> {
        front = Slice(x, zero, four, a)  rest = Slice(x, four, four, a)
        n = Neg(front)  y = Concat<axis=1>(n, rest) }""",
    "nothing to do": "agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }",
    "identities in a row": """agraph (float[1,4] x) => (float[1,4] y) {
        a = Identity(x)  b = Relu(a)  c = Identity(b)  y = Identity(c) }""",
    "identity from input to output": """agraph (float[1,4] x) => (float[1,4] y, float[1,4] z) {
        y = Identity(x)  z = Relu(y) }""",
    "identity of an output": """agraph (float[1,4] x) => (float[1,4] y, float[1,4] z) {
        y = Relu(x)  z = Identity(y) }""",
    "identity of a constant": """agraph (float[1,4] x) => (float[1,4] y, float[2] z)
        <float[2] c = {1, 2}> { y = Relu(x)  z = Identity(c) }""",
    "identities of four kinds": """agraph (float[1,4] x) => (float[1,4] y) <int64[2] s = {1, 4}> {
        a = Dropout(x)  b = Cast<to=1>(a)  c = Reshape(b, s)  d = Transpose<perm=[0,1]>(c)
        e = Flatten(d)  y = Relu(e) }""",
    "identity before a branch": """agraph (float[1,4] x, bool when) => (float[1,4] y) {
        a = Identity(x)
        y = If(when) <then_branch = yes () => (float[1,4] t) { t = Neg(a) },
                      else_branch = no () => (float[1,4] e) { e = Abs(a) }> }""",
    "a maximum and minima that are clamps": """agraph (float[1,4] x) => (float[1,4] y, float[1,4] z)
        <float low = {-0.5}, float[1] high = {0.5}, float[1,1,1] more = {0.1}> {
        a = Max(low, x)  b = Min(a, high)  y = Clip(b)  c = Clip(b, low)  d = Max(c, more)
        s = Squeeze(d)  z = Add(x, s) }""",
    "products and sums before convolutions": """agraph (float[1,2,3,3] x)
        => (float[1,2,3,3] y, float[1,2,3,3] z)
        <float[1,2,1,1] s = {0.5, -1}, float g = {-0.25}, float[2,2,1,1] v = {1, 2, -0.5, 0.3},
         float[2] b = {0.1, 0.2}, float[2,1,2,2] w = {1, 2, 3, 4, 0.5, 0.6, 0.7, 0.8}> {
        r = Sigmoid(x)  a = Mul(r, g)  c = Add(a, s)  y = Conv(c, v, b)
        t = Tanh(x)  d = Mul(t, g)  e = Sub(d, s)  z = Conv<group=2, pads=[1,1,0,0]>(e, w) }""",
    "branches that are always taken": """agraph (float[2] x) => (float[2] y, float[2] z)
        <bool yes = {1}, bool[1] no = {0}, float[2] c = {1, 2}> {
        a = Neg(x)  n = Not(yes)
        b = If(n) <then_branch = t () => (float[2] q) { q = Constant<value = float[2] {1, 2}>() },
            else_branch = e () => (float[2] q) { k = Constant<value = float[2] {3, 4}>()
                l = Mul(a, k)  q = If(no) <then_branch = tt () => (float[2] r) { r = Abs(l) },
                    else_branch = ee () => (float[2] s) { s = Sub(l, c) }> }>
        y = If(yes) <then_branch = f () => (float[2] u) { u = Identity(x) },
            else_branch = g () => (float[2] v) { v = Neg(x) }>
        z = Relu(b) }""",
    "constants in a row": """agraph (float[1,4] x) => (float[1,4] y)
        <float[4] c = {1, 2, 3, 4}> { a = Neg(c)  b = Abs(a)  k = Mul(a, b)  y = Add(x, k) }""",
    "shape arithmetic": """agraph (float[2,6] x) => (float[3,4] y)
        <int64[2] k = {3, 4}, int64[2] one = {1, 1}> {
        s = Shape(x)  t = Mul(s, one)  u = Sub(s, t)  v = Add(u, k)  y = Reshape(x, v) }""",
    "a constant output": """agraph (float[4] x) => (float[4] y, float[4] z)
        <float[4] c = {1, 2, 3, 4}> { z = Neg(c)  a = Abs(z)  y = Mul(x, a) }""",
    "transposes in a row": """agraph (float[2,3,4] x) => (float[4,2,3] y, float[2,3,4] z) {
        a = Transpose<perm=[1,2,0]>(x)  b = Transpose<perm=[1,2,0]>(a)
        c = Transpose(b)  d = Transpose(c)  y = Relu(d)
        e = Transpose<perm=[2,0,1]>(a)  z = Neg(e) }""",
    "a transpose undone between input and output": """agraph (float[2,3] x) => (float[2,3] y) {
        a = Transpose(x)  y = Transpose(a) }""",
    "a residual block between transposes": f"""agraph (float[1,5,4,2] x) => (float[1,5,4,2] y)
        <{WEIGHT}, float[2] c = {{0.5, -2}}> {{
        a = Transpose<perm=[0,3,1,2]>(x)  b = Conv<pads=[1,1,1,1]>(a, w)
        d = Transpose<perm=[0,2,3,1]>(b)  e = Add(d, c)
        f = Transpose<perm=[0,3,1,2]>(e)  g = Conv<pads=[1,1,1,1]>(f, w)
        h = Transpose<perm=[0,2,3,1]>(g)  i = Add(h, e)  j = Relu(i)  k = Concat<axis=-1>(j, i)
        l = Transpose<perm=[0,3,1,2]>(k)  m = MaxPool<kernel_shape=[1,1]>(l)
        n = Transpose<perm=[0,2,3,1]>(m)  o, p = Split<axis=3>(n)  y = Mul(o, p) }}""",
    "a transposed gate": """agraph (float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,3,4,2] z) {
        a = Transpose<perm=[0,2,3,1]>(x)  s = Sigmoid(a)  b = Mul(a, s)
        y = Transpose<perm=[0,3,1,2]>(b)  z = Neg(b) }""",
    "transposes around Q/DQ": """agraph (float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,2,3,4] z)
        <float s = {0.1}, int8 o = {3}> {
        a = Transpose<perm=[0,2,3,1]>(x)  q = QuantizeLinear(a, s, o)
        d = DequantizeLinear(q, s, o)
        y = Transpose<perm=[0,3,1,2]>(d)  z = Transpose<perm=[0,3,1,2]>(d) }""",
    "a transpose of a row": """agraph (float[1,4,1,1] x) => (float[1,4] y)
        <int64[2] k = {1, -1}> {
        a = Relu(x)  b = Transpose<perm=[0,2,3,1]>(a)  y = Reshape(b, k) }""",
    "transposes nothing undoes": """agraph (float[2,3] x) => (float[3,2] y, float[3,2] z) {
        a = Transpose(x)  y = Relu(a)  z = Neg(a) }""",
    "padding kinds": f"""{IMAGE} <{WEIGHT}> {{
        a = Conv<auto_pad = "SAME_UPPER", strides = [2,2]>(x, w)
        b = MaxPool<auto_pad = "SAME_LOWER", kernel_shape = [2,3], strides = [1,2]>(a)
        y = AveragePool<auto_pad = "VALID", kernel_shape = [2,1]>(b) }}""",
    "bias behind a convolution": f"""{IMAGE} <{WEIGHT}, float[1,2,1,1] c = {{1, -2}}> {{
        a = Conv(x, w)  b = Add(a, c)  d = Conv(b, w)  e = Add(c, d)  y = Relu(e) }}""",
    "bias behind a matrix": f"""agraph (float[3,4] x) => (float[3,2] y)
        <float[4,2] w = {{{numbers(8)}}}, float[2] c = {{1, -2}}> {{
        a = MatMul(x, w)  y = Add(a, c) }}""",
    "convolution, bias and normalization": f"""{IMAGE}
        <{WEIGHT}, {NORM}, float[2,1,1] c = {{1, -2}}> {{
        a = Conv(x, w)  b = Add(a, c)  y = BatchNormalization(b, gamma, beta, mean, var) }}""",
    "two normalizations": f"""{IMAGE} <{WEIGHT}, {NORM}> {{
        a = Conv(x, w)  b = BatchNormalization(a, gamma, beta, mean, var)
        y = BatchNormalization(b, gamma, beta, mean, var) }}""",
    "identities of nine more kinds": """agraph (float[1,2,4,4] x) => (float[1,2,4,4] y)
        <int64[8] none = {0,0,0,0,0,0,0,0}, int64[1] first = {0}, int64[1] end = {99},
         float[4] by = {1,1,1,1}, float[2,1,1] ones = {1, 1}, float zero = {0},
         float low = {-3.4028235e38}, int64[1] axis = {1}, int64[1] same = {1}> {
        a = Pad(x, none)  b = Slice(a, first, end, axis)  c = Concat<axis=1>(b)
        d = Resize(c, , by)  e = Mul(d, ones)  f = Add(e, zero)  g = Clip(f, low)
        h = Expand(g, same)  i = Sum(h)  y = Relu(i) }""",
    "reshapes in a row": """agraph (float[2,6] x) => (float[2,3,2] y, float[12] z)
        <int64[2] one = {0, 3}, int64[1] two = {1}, int64[3] s = {2, 3, 2}, int64[1] all = {-1}> {
        a = Unsqueeze(x, one)  b = Squeeze(a, one)  c = Flatten<axis=2>(b)  d = Reshape(c, all)
        e = Relu(d)  f = Unsqueeze(e, two)  y = Reshape(f, s)  z = Squeeze(f, two) }""",
    "transposes stacked": """agraph (float[2,3,4] x) => (float[3,4,2] y, float[2,3,4] z) {
        a = Transpose<perm=[1,0,2]>(x)  b = Transpose<perm=[0,2,1]>(a)  y = Relu(b)
        c = Transpose(x)  d = Transpose(c)  z = Abs(d) }""",
    "pads before windows": f"""{IMAGE} <{WEIGHT}, int64[8] p = {{0,0,1,0,0,0,0,2}},
        int64[8] q = {{0,0,1,0,0,0,1,1}}, float low = {{-3.4028235e38}}> {{
        a = Pad(x, p)  b = Conv<pads=[1,1,1,1]>(a, w)  c = Pad(b, q)
        d = AveragePool<kernel_shape=[2,2]>(c)  e = Pad(d, q, low)
        f = MaxPool<kernel_shape=[2,2]>(e)  g = Relu(f)  h = Pad(g, p)
        y = MaxPool<kernel_shape=[2,3]>(h) }}""",
    "channels scaled and moved": f"""{IMAGE} <{WEIGHT}, {NORM},
        float[2,1,1] c = {{1.5, -2}}, float k = {{0.7}}> {{
        a = Conv(x, w)  b = Mul(c, a)  d = Sub(b, k)  e = Div(d, c)  f = Sub(k, e)
        g = ConvTranspose(f, w)  h = BatchNormalization(g, gamma, beta, mean, var)
        y = Mul(h, k) }}""",
    "a lone normalization": f"""{IMAGE} <{NORM}> {{
        a = Relu(x)  y = BatchNormalization(a, gamma, beta, mean, var) }}""",
    "a constant first": """agraph (float[1,4] x) => (float[1,4] y) <float[4] c = {1, 2, 3, 4}> {
        a = Mul(c, x)  b = Add(c, a)  d = Div(b, c)  y = Relu(d) }""",
    "deconvolutions of a known output": f"""{IMAGE} <{WEIGHT}> {{
        a = ConvTranspose<auto_pad = "SAME_UPPER", strides = [2,1]>(x, w)
        b = ConvTranspose<auto_pad = "SAME_LOWER", strides = [1,2]>(a, w)
        c = ConvTranspose<output_shape = [13,15]>(b, w)
        y = ConvTranspose<auto_pad = "VALID">(c, w) }}""",
    "pads of some axes": f"""<ir_version: 9, opset_import: ["" : 18]> {IMAGE}
        <int64[4] p = {{1, -1, 0, 2}}, int64[2] axes = {{-1, 2}},
        float c = {{0.5}}, int64[2] q = {{1, 2}}, int64[1] last = {{3}}> {{
        a = Pad(x, p, c, axes)  y = Pad<mode = "reflect">(a, q, , last) }}""",
    "sums of many": """agraph (float[2,3] x, float[3] z) => (float[2,3] y)
        <float[2,1] c = {1, -2}> { a = Sum(x, z, c)  b = Mean(a, x, z)  y = Sum(b, a, c, c) }""",
    "matrices with factors": """agraph (float[4,3] x, float[4,2] v) => (float[3,2] y, float[2,3] z)
        <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2,4] u = {1, 2, 3, 4, 5, 6, 7, 8},
         float[2] b = {0.5, -2}, float[3,1] c = {1, 2, 3}> {
        a = Gemm<alpha = 0.5, beta = -1.5, transA = 1>(x, w, b)
        d = Gemm<alpha = 2.0, transA = 1, transB = 1>(x, u, c)
        e = Gemm<alpha = 0.25, transA = 1>(x, v, a)  y = Sum(a, d, e)
        z = Gemm<transA = 1>(v, x) }""",
    "vectors": f"""agraph (float[4] x, float[2,3,4] v) => (float[2,3] y, float[2,5] z, float u)
        <float[4] w = {{1, 2, 3, 4}}, float[2,4,5] m = {{{numbers(40)}}}> {{
        y = MatMul(v, w)  z = MatMul(x, m)  u = MatMul(x, x) }}""",
    "powers": """agraph (float[1,4] x) => (float[1,4] y)
        <float two = {2}, float half = {0.5}, float k = {-1}, float one = {1}> {
        a = Pow(x, two)  b = Add(a, one)  c = Pow(b, half)  d = Pow(c, k)  y = Pow(d, one) }""",
    "swish in three steps": """agraph (float[1,4] x) => (float[1,4] y)
        <float three = {3}, float zero = {0}, float six = {6}> {
        a = Add(x, three)  b = Clip(a, zero, six)  c = Mul(x, b)  y = Div(c, six) }""",
    "a softmax between reshapes": """agraph (float[2,3,1,1] x, float[2,4,3] w)
        => (float[2,3,1,1] y, float[2,4,3] z) <int64[4] s = {2,3,1,1}, int64[3] t = {2,4,3}> {
        a = Flatten(x)  b = Softmax(a)  y = Reshape(b, s)
        c = Flatten<axis=2>(w)  d = Softmax(c)  z = Reshape(d, t) }""",
    "a layer normalization": """agraph (float[2,3,4] x) => (float[2,3,4] y)
        <float[4] g = {1, 2, 3, 4}, float[4] b = {0, 1, -1, 2}, float e = {0.01}, float p = {2}> {
        m = ReduceMean<axes=[-1]>(x)  d = Sub(x, m)  s = Pow(d, p)  v = ReduceMean<axes=[2]>(s)
        w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  h = Mul(n, g)  y = Add(h, b) }""",
    "splits": """agraph (float[1,7,2] x) => (float[1,2,2] y, float[1,3,2] z, float[1,7,1] w)
        <int64[3] sizes = {2, 3, 2}> {
        a, z, b = Split<axis=1>(x, sizes)  c, unread = Split<axis=-1>(x)
        y = Sub(a, b)  w = Neg(c) }""",
    "what nobody reads": """agraph (float[1,4] x) => (float[1,4] y)
        <float[4] c = {1, 2, 3, 4}, float[1] unread = {1}> {
        a = Neg(x)  b = Mul(a, c)  y = Relu(x) }""",
    "a constant nobody reads": """agraph (float[1,4] x) => (float[1,4] y)
        <float[1] unread = {1}> { y = Relu(x) }""",
}

# In more nodes, of simpler kinds.
SPELLED_OUT = ("matrices with factors", "pads of some axes", "sums of many", "vectors")


def tensors(graph):
    return [value for node in graph.nodes() for value in node.outputs]


every_pass = pytest.mark.parametrize("run_pass", PASSES, ids=lambda run_pass: run_pass.__name__)


class Rewrite(NamedTuple):
    """What one run of a pass made of a graph, and the count that it returned."""

    before: Graph
    after: Graph
    count: int

    @property
    def is_change(self) -> bool:
        return self.after.to_bytes() != self.before.to_bytes()


@cache
def graph_of(name: str) -> Graph:
    return parse_text(GRAPHS[name])


@cache
def rewrites(run_pass) -> dict[str, Rewrite]:
    """Of every graph, by name."""
    after = {name: graph_of(name).copy() for name in GRAPHS}
    return {name: Rewrite(graph_of(name), graph, run_pass(graph)) for name, graph in after.items()}


@cache
def changes(run_pass) -> dict[str, Rewrite]:
    """Those that are another graph than before: the others keep all that the graph has."""
    return {name: each for name, each in rewrites(run_pass).items() if each.is_change}


def assert_same(before, after, rtol, name):
    assert list(before) == list(after), name
    for output, old in before.items():
        assert after[output].dtype == old.dtype, name
        np.testing.assert_allclose(after[output], old, rtol=rtol, atol=rtol, err_msg=name)


@every_pass
def test_every_output_is_kept(run_pass, outputs):
    rtol = 1e-5 if run_pass in ROUNDS else 0.0
    for name, (before, after, _) in changes(run_pass).items():
        assert_same(outputs(before), outputs(after), rtol, name)


@every_pass
def test_the_count_is_honest(run_pass):
    counted = {name for name, each in rewrites(run_pass).items() if each.count > 0}
    assert counted == changes(run_pass).keys()


@every_pass
def test_nothing_is_left_to_do(run_pass):
    again = {name: run_pass(each.after.copy()) for name, each in rewrites(run_pass).items()}
    assert again == dict.fromkeys(GRAPHS, 0)


@every_pass
def test_the_graph_stays_valid(run_pass):
    for name, each in changes(run_pass).items():
        assert is_valid(each.after), name


@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_is_valid_before(name):
    assert is_valid(graph_of(name))


def is_valid(graph: Graph) -> bool:
    """Raises an error of onnx otherwise."""
    return onnx.checker.check_model(graph.to_bytes(), full_check=True) is None


@every_pass
def test_some_graph_shows_the_pass(run_pass):
    assert changes(run_pass)


@pytest.mark.parametrize("name", GRAPHS)
def test_all_passes_together_keep_every_output(name, outputs):
    graph = graph_of(name)
    better = optimized(graph)
    assert_same(outputs(graph), outputs(better), 1e-5, name)
    assert all(run_pass(better) == 0 for run_pass in PASSES)
    is_spelled_out = name in SPELLED_OUT
    assert is_spelled_out or len(tensors(better)) <= len(tensors(graph))  # a Split has its parts


def test_optimizing_leaves_what_it_was_given_alone():
    graph = parse_text(GRAPHS["identities in a row"])
    before = graph.to_bytes()
    optimized(graph)
    assert graph.to_bytes() == before
