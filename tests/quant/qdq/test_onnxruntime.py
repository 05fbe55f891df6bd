"""Models that onnxruntime quantized, in all its settings, compute here what they compute there."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from npumake.compilers.tflite import tflite_file
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.errors import StageError
from npumake.frontends import read_model
from npumake.graph import Graph, annotations_of, array, upgraded
from npumake.passes import optimized
from npumake.quant.qdq.brought_grids import (
    NOTE_REGRIDDED,
    NOTE_SYMMETRIC,
    carries_grids,
    with_own_grids,
)
from npumake.runtime.litert import LiteRtSession
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target
from processors import products_saturate
from workspaces import few

RNG = np.random.default_rng(0)
IMAGE, ROWS = "float[1,3,8,8] x", "float[2,8] x"


def held(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


W, B = held(6, 3, 3, 3), held(6)
NETS: Mapping[str, tuple[str, str, Mapping[str, np.ndarray]]] = {
    "conv": (IMAGE, "c = Conv<pads=[1,1,1,1]>(x, w, b) y = Relu(c)", {"w": W, "b": B}),
    "pools": (
        IMAGE,
        "c = Conv(x, w, b) m = MaxPool<kernel_shape=[2,2]>(c) "
        "a = AveragePool<kernel_shape=[2,2]>(m) g = GlobalAveragePool(a) y = Flatten(g)",
        {"w": W, "b": B},
    ),
    "transposed": (
        IMAGE,
        "y = ConvTranspose<strides=[2,2]>(x, w, b)",
        {"w": held(3, 4, 2, 2), "b": held(4)},
    ),
    "depthwise": (IMAGE, "y = Conv<group=3>(x, w, b)", {"w": held(3, 1, 3, 3), "b": held(3)}),
    "gemm": (ROWS, "y = Gemm<transB=1>(x, w, b)", {"w": held(5, 8), "b": held(5)}),
    "matmul": (ROWS, "m = MatMul(x, w) y = Add(m, b)", {"w": held(8, 5), "b": held(5)}),
    "attention": (
        ROWS,
        "q = MatMul(x, w) k = MatMul(x, v) t = Transpose<perm=[1,0]>(k) s = MatMul(q, t) "
        "p = Softmax(s) y = MatMul(p, k)",
        {"w": held(8, 8), "v": held(8, 8)},
    ),
    "arithmetic": (
        IMAGE,
        "c = Conv(x, w) s = Sigmoid(c) m = Mul(c, s) a = Add(m, k) y = Concat<axis=1>(a, c)",
        {"w": held(3, 3, 1, 1), "k": held(1, 3, 1, 1)},
    ),
    "resize": (
        IMAGE,
        'c = Conv(x, w) y = Resize<mode="linear">(c, , s)',
        {"w": held(3, 3, 1, 1), "s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "clip": (
        IMAGE,
        "c = Conv(x, w) y = Clip(c, low, high)",
        {"w": held(3, 3, 1, 1), "low": np.float32(0), "high": np.float32(1)},
    ),
}
QDQ = {"quant_format": QuantFormat.QDQ}
U8, I8 = {"activation_type": QuantType.QUInt8}, {"activation_type": QuantType.QInt8}
WORDS = {
    "int16": {**QDQ, "activation_type": QuantType.QInt16, "weight_type": QuantType.QInt8},
    "uint16": {**QDQ, "activation_type": QuantType.QUInt16, "weight_type": QuantType.QInt8},
}


def more(**options: bool) -> dict[str, Any]:
    return {**QDQ, **U8, "weight_type": QuantType.QInt8, "extra_options": options}


SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "per tensor": more(),
    "per channel": {**more(), "per_channel": True},
    "int8": {**more(), **I8},
    "uint8 weights": {**more(), "weight_type": QuantType.QUInt8},
    "uint8 weights per channel": {**more(), "weight_type": QuantType.QUInt8, "per_channel": True},
    "asymmetric weights": {**more(WeightSymmetric=False), "per_channel": True},
    "symmetric": {**more(ActivationSymmetric=True), **I8},
    "reduced": {**more(), "reduce_range": True},
    "pairs of weights": more(AddQDQPairToWeight=True),
    "dedicated": more(DedicatedQDQPair=True),
    "float bias": more(QuantizeBias=False),
    "forced": more(ForceQuantizeNoInputCheck=True),
    "kept activations": more(QDQKeepRemovableActivations=True),
    "foreign domain": more(UseQDQContribOps=True),
    "int4 weights": {**more(), "weight_type": QuantType.QInt4},
    "only conv": {**more(), "op_types_to_quantize": ["Conv", "MatMul"]},
    "operators": {**more(), "quant_format": QuantFormat.QOperator},
    "operators int8": {**more(), **I8, "quant_format": QuantFormat.QOperator},
    "operators per channel": {
        **more(),
        "quant_format": QuantFormat.QOperator,
        "per_channel": True,
    },
    **WORDS,
}
# Weights that TensorFlow Lite has not lose half a step of a grid of twice the width, at most.
ROUNDED = ("uint8 weights", "uint8 weights per channel", "asymmetric weights", "int4 weights")
CODES = {"tflite": 2, "ara240": 1, "rdk-x5": 1}
WORD_CODES = 8  # of 65536: the scale of a grid that must be symmetric is up to twice as wide
LOST_CODES = 12
FEW = ("conv", "attention", "clip", "arithmetic")


class Reader(CalibrationDataReader):
    def __init__(self, feeds: list[Mapping[str, np.ndarray]]) -> None:
        self.feeds = iter(feeds)

    def get_next(self) -> Any:
        return next(self.feeds, None)


def feeds_of(net: str) -> list[Mapping[str, np.ndarray]]:
    shape = (1, 3, 8, 8) if NETS[net][0] == IMAGE else (2, 8)
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=shape).astype(np.float32)} for _ in range(8)]


def float_model(net: str) -> onnx.ModelProto:
    fed, nodes, constants = NETS[net]
    text = f'<ir_version: 8, opset_import: ["" : 17]> agraph ({fed}) => (float y) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    for name, values in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model)


def quantized_by_onnxruntime(net: str, setting: str, path: Any) -> bytes:
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(4)
    model = copy.deepcopy(float_model(net))
    settings = {**SETTINGS[setting]}
    if setting.startswith("operators") and products_saturate():
        settings["reduce_range"] = True  # 7 bits, whose products fit
    quantize_static(model, path / "q.onnx", Reader(feeds_of(net)), **settings)
    logging.disable(logging.NOTSET)
    return (path / "q.onnx").read_bytes()


def graph_of(data: bytes) -> Graph:
    return optimized(upgraded(read_model(data, "q.onnx")).with_shapes())


def of_interest(case: tuple[str, str]) -> bool:
    net, setting = case
    return net == "conv" or (net in FEW and setting in ("per tensor", "operators", "int16"))


CASES = few([(net, setting) for net in NETS for setting in SETTINGS], of_interest)


@pytest.mark.slow
@pytest.mark.parametrize("chip", CODES)
@pytest.mark.parametrize(("net", "setting"), CASES)
def test_integers_give_what_onnxruntime_gives(net, setting, chip, tmp_path):
    data, target = quantized_by_onnxruntime(net, setting, tmp_path), read_target(chip)
    graph = graph_of(data)
    if not carries_grids(graph):
        pytest.skip("onnxruntime quantized nothing")
    integers = quantized(with_own_grids(graph, target), target)
    program = lowered(integers, target.rounding, target.runnable)
    sessions = [ExactSession(program)]
    if chip == "tflite":
        pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
        sessions.append(LiteRtSession(tflite_file(program, integers), "q.tflite"))
    codes = WORD_CODES if setting in WORDS and chip == "tflite" else CODES[chip]
    if chip == "tflite" and setting in ROUNDED:
        codes = LOST_CODES
    assert_alike(data, sessions, feeds_of(net)[:2], codes * step_of(graph))


def step_of(graph: Graph) -> float:
    """The scale of the last grid before the output."""
    node = graph.outputs[0].producer()
    while node.op_type != "DequantizeLinear":
        node = next(value.producer() for value in node.inputs if value and value.producer())
    return float(array(node.inputs[1]).max())


def assert_alike(data, sessions, feeds, most):
    """No further than this from what onnxruntime gives."""
    wanted = [OrtSession(data, fusion="none").run(None, feed)[0] for feed in feeds]
    for session in sessions:
        for feed, y in zip(feeds, wanted, strict=True):
            fed = feed["x"]
            if tuple(session.inputs[0].shape) != fed.shape:
                fed = fed.transpose(0, 2, 3, 1)
            (made,) = session.run(None, {"x": np.ascontiguousarray(fed)})
            made = made if made.shape == y.shape else made.transpose(0, 3, 1, 2)
            assert np.abs(made - y).max() <= 1.001 * most


def test_weights_that_are_rounded_and_scales_that_grow_are_told(tmp_path):
    notes = {}
    for setting in ("per tensor", "uint8 weights", "uint16"):
        graph = graph_of(quantized_by_onnxruntime("conv", setting, tmp_path))
        notes[setting] = annotations_of(with_own_grids(graph, read_target("tflite")))
    assert notes["per tensor"] == ()
    assert [note.partition(":")[0] for note in notes["uint8 weights"]] == [NOTE_REGRIDDED]
    assert [note.partition(":")[0] for note in notes["uint16"]] == [NOTE_SYMMETRIC]


@pytest.mark.parametrize("setting", WORDS)
def test_16_bits_are_refused_by_name_where_a_chip_has_none(setting, tmp_path):
    graph = graph_of(quantized_by_onnxruntime("gemm", setting, tmp_path))
    with pytest.raises(StageError, match="iree-cpu has no 16 bits") as caught:
        with_own_grids(graph, read_target("iree-cpu"))
    assert caught.value.hint == "quantize it again with activations of 8 bits"


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("net", ["conv", "matmul"])
def test_a_model_quantized_dynamically_is_a_float_one(net, kind, tmp_path):
    model, file = copy.deepcopy(float_model(net)), tmp_path / "q.onnx"
    quantize_dynamic(model, file, weight_type=kind, reduce_range=products_saturate())
    data, feed = file.read_bytes(), feeds_of(net)[0]
    graph = graph_of(data)
    assert not carries_grids(graph)
    wanted, made = (
        OrtSession(d, fusion="none").run(None, feed)[0] for d in (data, graph.to_bytes())
    )
    assert np.abs(wanted - made).max() <= 0.02 * np.ptp(wanted)
