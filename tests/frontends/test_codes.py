"""Models that were quantized elsewhere come in one spelling, and compute what they did."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.frontends.codes.qoperators import QOPERATORS
from npumake.graph import Graph, upgraded
from processors import products_saturate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1, 4, 6, 6)).astype(np.float32)
SCALES = {"xs": np.float32(0.03), "ys": np.float32(0.04), "zs": np.float32(0.05)}
ZERO_POINTS = {"xz": np.uint8(120), "yz": np.uint8(130), "zz": np.uint8(110)}
GRIDS = {**SCALES, **ZERO_POINTS}
WEIGHT = {
    "w": RNG.integers(-127, 128, (5, 4, 1, 1)).astype(np.int8),
    "ws": np.linspace(0.01, 0.02, 5, dtype=np.float32),
    "wz": np.zeros(5, np.int8),
    "b": RNG.integers(-900, 900, 5).astype(np.int32),
}
MATRIX = {
    "w": RNG.integers(0, 256, (6, 3)).astype(np.uint8),
    "ws": np.float32(0.01),
    "wz": np.uint8(131),
    "b": RNG.integers(-900, 900, 3).astype(np.int32),
}
FLAT = {"shape": np.array([24, 6], np.int64)}
AXES = {"axes": np.array([1], np.int64), "one": np.array([1], np.int64)}
# One node of each, from codes q of x to codes p: its text, its constants, its domain.
CASES = {
    "QLinearConv": ("p = QLinearConv(q, xs, xz, w, ws, wz, ys, yz, b)", WEIGHT),
    "QLinearMatMul": ("p = QLinearMatMul(q, xs, xz, w, ws, wz, ys, yz)", MATRIX),
    "QGemm": (
        "r = Reshape(q, shape) p = com.microsoft.QGemm<alpha=0.5>(r, xs, xz, w, ws, wz, b, ys, yz)",
        {**MATRIX, **FLAT},
    ),
    "QLinearAdd": ("p = com.microsoft.QLinearAdd(q, xs, xz, q, xs, xz, ys, yz)", {}),
    "QLinearMul": ("p = com.microsoft.QLinearMul(q, xs, xz, q, xs, xz, ys, yz)", {}),
    "QLinearSigmoid": ("p = com.microsoft.QLinearSigmoid(q, xs, xz, ys, yz)", {}),
    "QLinearLeakyRelu": ("p = com.microsoft.QLinearLeakyRelu<alpha=0.2>(q, xs, xz, ys, yz)", {}),
    "QLinearSoftmax": (
        "p = com.microsoft.QLinearSoftmax<axis=1, opset=12>(q, xs, xz, us, uz)",
        {"us": np.float32(1 / 256), "uz": np.uint8(0)},
    ),
    "QLinearConcat": (
        "p = com.microsoft.QLinearConcat<axis=1>(ys, yz, q, xs, xz, q, xs, xz)",
        {},
    ),
    "QLinearAveragePool": (
        "p = com.microsoft.QLinearAveragePool<kernel_shape=[2,2], strides=[2,2]>"
        "(q, xs, xz, ys, yz)",
        {},
    ),
    "QLinearGlobalAveragePool": (
        "p = com.microsoft.QLinearGlobalAveragePool(q, xs, xz, ys, yz)",
        {},
    ),
    "QLinearReduceMean": (None, {}),  # onnxruntime has its schema, and no kernel
    "QLinearWhere": (
        "c = Greater(x, none) p = com.microsoft.QLinearWhere(c, q, xs, xz, q, xs, xz, ys, yz)",
        {"none": np.float32(0)},
    ),
}
MOVED = {
    "MaxPool": "p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(q)",
    "Transpose": "p = Transpose<perm=[0,2,3,1]>(q)",
    "Pad": "p = Pad(q, pads, xz)",
    "Pad of code 0": "p = Pad(q, pads)",
    "Gather": "p = Gather<axis=1>(q, two)",
    "Split": "p, rest = Split<axis=1>(q, halves)",
    "Slice": "p = Slice(q, one, two, one)",
    "two": "r = Transpose<perm=[0,2,3,1]>(q) p = MaxPool<kernel_shape=[2,2]>(r)",
}
MOVING = {
    "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
    "halves": np.array([2, 2], np.int64),
    "one": np.array([1], np.int64),
    "two": np.array([2], np.int64),
}


def model(nodes: str, constants, opset: int = 17, ins: str = "float[1,4,6,6] x") -> bytes:
    text = f"""<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>
        agraph ({ins}) => (float y) {{ {nodes} }}"""
    made = onnx.parser.parse_model(text)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    for name, values in constants.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    return made.SerializeToString()


def outputs(data: bytes, feed=X) -> np.ndarray:
    return OrtSession(data, fusion="none").run(None, {"x": feed})[0]


def read(data: bytes) -> Graph:
    return upgraded(read_model(data, "m.onnx")).with_shapes()


def in_pairs(nodes: str, scale: str = "ys", zero_point: str = "yz") -> str:
    return f"q = QuantizeLinear(x, xs, xz) {nodes} y = DequantizeLinear(p, {scale}, {zero_point})"


def assert_same(data: bytes, step: float) -> Graph:
    graph = read(data)
    assert {node.op_type for node in graph.nodes()}.isdisjoint(QOPERATORS)
    assert not any(node.domain for node in graph.nodes())
    difference = np.abs(outputs(graph.to_bytes()) - outputs(data)).max()
    assert difference <= step * 1.001  # one code
    return graph


def test_every_operator_of_codes_is_tried():
    assert CASES.keys() == QOPERATORS.keys()


@pytest.mark.parametrize("name", [name for name, (nodes, _) in CASES.items() if nodes])
@pytest.mark.parametrize("opset", [12, 17])
def test_an_operator_of_codes_becomes_a_float_one_between_pairs(name, opset):
    nodes, constants = CASES[name]
    if opset < 13 and name in ("QLinearConv",):
        constants = constants | {"ws": np.float32(0.01), "wz": np.int8(0)}
    if name == "QLinearConv" and products_saturate():
        constants = constants | {"w": constants["w"] // 2}  # 7 bits, whose products fit
    own = ("us", "uz") if name == "QLinearSoftmax" else ("ys", "yz")
    data = model(in_pairs(nodes, *own), {**GRIDS, **constants}, opset)
    graph = assert_same(data, float({**GRIDS, **constants}[own[0]]))
    assert graph.nodes(QOPERATORS[name].op_type)


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_codes_moves_reals_between_pairs_of_one_grid(name):
    data = model(in_pairs(MOVED[name], "xs", "xz"), {**GRIDS, **MOVING})
    graph = read(data)
    np.testing.assert_array_equal(outputs(graph.to_bytes()), outputs(data))
    moving = graph.nodes(MOVED[name].partition("= ")[2].partition("(")[0].partition("<")[0])
    assert all(node.inputs[0].producer().op_type == "DequantizeLinear" for node in moving)


def test_codes_of_an_embedding_are_gathered_as_reals():
    nodes = "g = Gather(w, x) y = DequantizeLinear(g, ws, wz)"
    data = model(nodes, MATRIX, ins="int64[1,4] x")
    feed = np.array([[0, 5, 2, 2]])
    graph = read(data)
    np.testing.assert_array_equal(outputs(graph.to_bytes(), feed), outputs(data, feed))


@pytest.mark.parametrize(
    ("nodes", "given"),
    [
        (
            "q = com.microsoft.QuantizeLinear(x, xs, xz) "
            "y = com.microsoft.DequantizeLinear(q, xs, xz)",
            {},
        ),
        ("q = QuantizeLinear(x, xs) y = DequantizeLinear(q, xs)", {}),
        (
            "q = com.microsoft.QuantizeLinear(x, ws, vz) "
            "y = com.microsoft.DequantizeLinear(q, ws, vz)",
            {"vz": np.uint16(30000)},
        ),
    ],
    ids=["foreign domain", "no zero point", "16 bits"],
)
def test_pairs_are_spelled_one_way(nodes, given):
    data = model(nodes, {**GRIDS, "ws": np.float32(0.001), **given})
    graph = assert_same(data, 0.0)
    assert all(len(node.inputs) == 3 for node in graph.nodes())
    assert graph.opset == (21 if given else 20)


@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_weights_of_4_bits_are_the_same_numbers_in_8(kind):
    codes = RNG.integers(0, 8, (5, 4, 1, 1))
    number = {"int4": onnx.TensorProto.INT4, "uint4": onnx.TensorProto.UINT4}[kind]
    data = onnx.load_from_string(
        model(
            "q = QuantizeLinear(x, xs, xz) d = DequantizeLinear(q, xs, xz) "
            "dw = DequantizeLinear(w, ws, wz) y = Conv(d, dw)",
            {**GRIDS, "ws": np.float32(0.1)},
            opset=21,
        )
    )
    make = onnx.helper.make_tensor
    data.graph.initializer.append(make("w", number, codes.shape, codes.reshape(-1)))
    data.graph.initializer.append(make("wz", number, [], [3]))
    assert_same(data.SerializeToString(), 0.0)


BLOCKED = "y = DequantizeLinear<axis=0, block_size=3>(w, bs, bz)"


@pytest.mark.parametrize(
    ("nodes", "given", "what"),
    [
        ("y = com.microsoft.QAttention<num_heads=1>(x, x, x, x, x)", {}, "QAttention"),
        ("y = com.microsoft.QLinearFoo(x, x, x, x, x)", {}, "QLinearFoo"),
    ],
)
def test_an_operator_of_no_table_is_named(nodes, given, what):
    with pytest.raises(GraphError, match=what):
        read_model(model(nodes, {**GRIDS, **given}), "m.onnx")


def test_a_scale_for_each_block_is_refused_by_name():
    held = {
        "w": RNG.integers(-8, 8, (6, 3)).astype(np.int8),
        "bs": np.full((2, 3), 0.1, np.float32),
        "bz": np.zeros((2, 3), np.int8),
    }
    nodes = f"{BLOCKED[4:].strip()}".replace("DequantizeLinear", "v = DequantizeLinear", 1)
    data = model(f"{nodes} y = MatMul(x, v)", held, opset=21, ins="float[2,6] x")
    with pytest.raises(GraphError, match="a scale for each block") as caught:
        read_model(data, "m.onnx")
    assert "quantize it again" in caught.value.hint


DYNAMIC = {
    "conv": (
        "q, s, z = DynamicQuantizeLinear(x) i = ConvInteger(q, w, z, wz) f = Cast<to=1>(i) "
        "k = Mul(s, ws) y = Mul(f, k)",
        {"w": WEIGHT["w"], "wz": np.int8(3), "ws": np.float32(0.01)},
    ),
    "matmul": (
        "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, z, wz) f = Cast<to=1>(i) "
        "k = Mul(s, ws) y = Mul(f, k)",
        MATRIX,
    ),
    "fused": (
        "y = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz, fb)",
        {**MATRIX, "fb": np.float32([1, 2, 3])},
    ),
    "to float": (
        "q, s, z = DynamicQuantizeLinear(x) "
        "y = com.microsoft.MatMulIntegerToFloat(q, w, s, ws, z, wz)",
        MATRIX,
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_dynamic_scale_becomes_a_float_model_with_the_same_weights(name):
    nodes, constants = DYNAMIC[name]
    data = model(nodes, constants)
    graph = read(data)
    assert not any(node.op_type.startswith("Dynamic") for node in graph.nodes())
    wanted, made = outputs(data), outputs(graph.to_bytes())
    step = np.ptp(X) / 255  # of what is read; an error of half of it on each of a row of inputs
    scale = np.abs(np.asarray(constants["ws"])).max() * 255
    assert np.abs(wanted - made).max() <= step * scale * 6


def test_codes_of_a_dynamic_scale_that_another_operator_reads_are_refused():
    data = model("q, s, z = DynamicQuantizeLinear(x) y = Cast<to=1>(q)", {})
    with pytest.raises(GraphError, match=r"`y` \(Cast\) reads codes of no fixed scale"):
        read_model(data, "m.onnx")
