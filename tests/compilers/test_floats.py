"""A node left in float computes in LiteRT what it does in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers.tflite import tflite_file
from npumake.debug.layer_by_layer import litert_tensors
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.passes import optimized

HEADER = '<ir_version: 9, opset_import: ["" : 20]> agraph'
RNG = np.random.default_rng(0)


def drawn(*shape: int) -> str:
    return "{" + ",".join(f"{number:.3f}" for number in RNG.normal(size=shape).ravel()) + "}"


HELD = (
    f"float[4,3,3,3] w = {drawn(4, 3, 3, 3)}, float[3,1,3,3] each = {drawn(3, 1, 3, 3)}, "
    f"float[3,2,2,2] up = {drawn(3, 2, 2, 2)}, float[4] b = {drawn(4)}, "
    f"float[7,4] m = {drawn(7, 4)}, float[1,3,7,2] many = {drawn(1, 3, 7, 2)}, "
    f"float[7] g = {drawn(7)}, float[7] h = {drawn(7)}, float one = {{1.0}}, "
    f"float[2,8,7] lw = {drawn(2, 8, 7)}, float[2,8,2] lr = {drawn(2, 8, 2)}, "
    f"float[1,1,5,7] one4 = {drawn(1, 1, 5, 7)}, "
    f"int64[8] even = {{0,0,0,0,0,0,1,1}}, float[2,16] lb = {drawn(2, 16)}, "
    f"int64[3] seq = {{5,3,7}}, int64[2] hw = {{2,3}}, "
    f"int64[4] twice = {{2,1,1,2}}, int64[4] large = {{2,1,5,7}}, "
    f"int64[1,1,1,2] few = {{-1,0}}, int64[2,3] rows = {{0,-1,2,0,0,1}}, "
    f"int64[2] flat = {{15,7}}, float two = {{2.0}}, float[4] s = {{1.0,1.0,2.0,2.0}}, "
    f"int64[8] around = {{0,0,1,2,0,0,2,1}}, float[1,8,7] lw1 = {drawn(1, 8, 7)}, "
    f"float[1,8,2] lr1 = {drawn(1, 8, 2)}, float[1,3,2] h0 = {drawn(1, 3, 2)}, "
    f"float[1,6,7] gw1 = {drawn(1, 6, 7)}, float[1,6,2] gr1 = {drawn(1, 6, 2)}, "
    f"float[1,12] gb1 = {drawn(1, 12)}, float[1,2,7] nw1 = {drawn(1, 2, 7)}, "
    f"float[1] low = {{-0.5}}, int64[1] single = {{1}}, "
    f"float[1,2,2] nr1 = {drawn(1, 2, 2)}"
)
LSTM = "t = Reshape(x, seq) y, y_h, y_c = LSTM <hidden_size: int = 2{}>"
GRU = "t = Reshape(x, seq) y, y_h = GRU <hidden_size: int = 2{}>"
POOL = "kernel_shape: ints = [3, 3], strides: ints = [2, 2]"
# The shape of y, and how it is made of x (1, 3, 5, 7).
NODES = {
    "Conv": ("1,4,5,7", "y = Conv <pads: ints = [1, 1, 1, 1]>(x, w, b)"),
    "depthwise Conv": ("1,3,3,4", "y = Conv <group: int = 3, strides: ints = [1, 2], "
                       "pads: ints = [0, 1, 0, 1]>(x, each)"),
    "ConvTranspose": ("1,2,10,14", "y = ConvTranspose <strides: ints = [2, 2]>(x, up)"),
    "Gemm": ("15,4", "r = Reshape(x, flat) y = Gemm(r, m, b)"),
    "MatMul": ("1,3,5,4", "y = MatMul(x, m)"),
    "MatMul of a batch": ("1,3,5,2", "y = MatMul(x, many)"),
    "MaxPool": ("1,3,3,4", f"y = MaxPool <{POOL}, pads: ints = [1, 1, 1, 1]>(x)"),
    "AveragePool": ("1,3,2,3", f"y = AveragePool <{POOL}>(x)"),
    "GlobalAveragePool": ("1,3,1,1", "y = GlobalAveragePool(x)"),
    "GlobalMaxPool": ("1,3,1,1", "y = GlobalMaxPool(x)"),
    "ReduceMean": ("1,3,1,1", "y = ReduceMean(x, hw)"),
    "ReduceMax": ("1,3", "y = ReduceMax <keepdims: int = 0>(x, hw)"),
    "ReduceSum": ("1,3,1,1", "y = ReduceSum(x, hw)"),
    "Pad": ("1,3,8,10", "y = Pad(x, around)"),
    "LayerNormalization": ("1,3,5,7", "y = LayerNormalization(x, g, h)"),
    "Gelu": ("1,3,5,7", "y = Gelu(x)"),
    "Mish": ("1,3,5,7", "y = Mish(x)"),
    "Softplus": ("1,3,5,7", "y = Softplus(x)"),
    "Softsign": ("1,3,5,7", "y = Softsign(x)"),
    "Reciprocal": ("1,3,5,7", "z = Exp(x) y = Reciprocal(z)"),
    "Pow": ("1,3,5,7", "z = Abs(x) y = Pow(z, two)"),
    "Max of three": ("1,3,5,7", "z = Neg(x) y = Max(x, z, one)"),
    "Min": ("1,3,5,7", "z = Neg(x) y = Min(x, z)"),
    "Where": ("1,3,5,7", "c = Greater(x, g) n = Not(c) z = Cos(x) y = Where(n, z, x)"),
    "Cast": ("1,3,5,7", "c = Less(x, g) y = Cast <to: int = 1>(c)"),
    "Floor, Ceil, Sin": ("1,3,5,7", "a = Floor(x) c = Ceil(x) d = Sin(a) "
                                "y = Add(d, c)"),
    "Clip": ("1,3,5,7", "z = Neg(one) y = Clip(x, z, one)"),
    "Clip at a computed bound": ("1,3,5,7", "z = ReduceMax <keepdims: int = 0>(x) "
                                 "y = Clip(x, , z)"),
    "Clip at bounds of shape [1], twice": (
        "1,3,5,7", "top = ReduceMax <keepdims: int = 0>(x) z = Reshape(top, single) "
        "p = Clip(x, low, z) n = Neg(p) k = Neg(low) y = Clip(n, low, k)"),
    "HardSigmoid": ("1,3,5,7", "y = HardSigmoid(x)"),
    "Softmax": ("1,3,5,7", "y = Softmax <axis: int = 1>(x)"),
    "DepthToSpace": ("1,1,10,14", "z = Concat <axis: int = 1>(x, one4) "
                     "y = DepthToSpace <blocksize: int = 2>(z)"),
    "DepthToSpace, columns first": ("1,1,10,14", "z = Concat <axis: int = 1>(x, one4) "
                     'y = DepthToSpace <blocksize: int = 2, mode: string = "CRD">(z)'),
    "Tile": ("2,3,5,14", "y = Tile(x, twice)"),
    "Expand": ("2,3,5,7", "z = ReduceMean(x, hw) y = Expand(z, large)"),
    "GatherElements": ("1,1,1,2", "y = GatherElements <axis: int = 1>(x, few)"),
    "GatherND": ("2,7", "y = GatherND(x, rows)"),
    "ReduceMin": ("1,3", "y = ReduceMin <keepdims: int = 0>(x, hw)"),
    "Min of small ones first": ("1,3,5,7", "z = ReduceMean(x, hw) y = Min(one, z, x)"),
    "SpaceToDepth": ("1,12,3,4", "z = Pad(x, even) y = SpaceToDepth <blocksize: int = 2>(z)"),
    "LSTM": ("5,1,3,2", LSTM.format("") + "(t, lw1, lr1)"),
    "LSTM from a state": ("5,1,3,2", "i = Sin(h0) " + LSTM.format("") + "(t, lw1, lr1, , , i, h0)"),
    "LSTM backwards": (
        "5,1,3,2", LSTM.format(', direction: string = "reverse"') + "(t, lw1, lr1)"
    ),
    "GRU": ("5,1,3,2", GRU.format("") + "(t, gw1, gr1)"),
    "GRU that resets behind": (
        "5,1,3,2", "i = Sin(h0) " + GRU.format(", linear_before_reset: int = 1")
        + "(t, gw1, gr1, gb1, , i)"
    ),
    "GRU backwards": (
        "5,1,3,2", GRU.format(', direction: string = "reverse"') + "(t, gw1, gr1, gb1)"
    ),
    "RNN": ("5,1,3,2", "t = Reshape(x, seq) y, y_h = RNN <hidden_size: int = 2>(t, nw1, nr1)"),
    "LSTM both ways": (
        "5,2,3,2", LSTM.format(', direction: string = "bidirectional"') + "(t, lw, lr, lb)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_a_node_in_float_is_the_one_of_onnxruntime(name):
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    dims, body = NODES[name]
    graph = parse_text(f"{HEADER} (float[1,3,5,7] x) => (float[{dims}] y) <{HELD}> {{ {body} }}")
    graph = optimized(graph.with_shapes())
    fed = {"x": RNG.normal(size=(1, 3, 5, 7)).astype(np.float32)}
    (wanted,) = OrtSession(graph.to_bytes()).run(["y"], fed)
    made = litert_tensors(tflite_file(lowered(graph, "twice"), graph), fed, fed)["y"]
    laid = made if made.shape == wanted.shape else made.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(laid, wanted, rtol=1e-5, atol=1e-5)


def test_all_that_a_file_cannot_hold_is_told_at_once():
    body = "a = Erf(x) b1 = Relu(a) c = Erf(b1) y = Det(c)"
    graph = parse_text(f"{HEADER} (float[1,3,5,5] x) => (float[1,3] y) {{ {body} }}").with_shapes()
    with pytest.raises(GraphError, match="3 nodes cannot be in") as caught:
        tflite_file(lowered(graph, "twice"), graph)
    assert caught.value.what.count("TensorFlow Lite has no") == 3
    assert ".hybrid" in caught.value.hint
