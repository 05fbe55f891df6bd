"""Grids that a model brings, in shapes that onnxruntime's quantizer does not write."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from npumake.compilers.tflite import tflite_file
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import upgraded
from npumake.passes import optimized
from npumake.quant.qdq.brought_grids import with_own_grids
from npumake.runtime.litert import LiteRtSession
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(1, 3, 4, 6)).astype(np.float32)
CODES = RNG.integers(0, 256, (1, 3, 4, 6)).astype(np.uint8)
HELD = {
    "w": RNG.integers(-127, 128, (4, 3, 1, 1)).astype(np.int8),
    "ws": np.float32(0.01),
    "wz": np.int8(0),
    "fw": RNG.normal(size=(4, 3, 1, 1)).astype(np.float32),
    "xs": np.float32(0.02),
    "xz": np.uint8(120),
    "ys": np.float32(0.05),
    "yz": np.uint8(100),
    "b8": np.array([10, -20, 30, 120], np.int8),
    "bs": np.float32(0.02),
    "b32": np.array([1000, -2000, 3000, 12000], np.int32),
    "vs": np.float32(0.0004),
    "vz": np.int32(0),
    "k": RNG.normal(size=(1, 4, 1, 1)).astype(np.float32),
}
FED = "e = QuantizeLinear(x, xs, xz)  d = DequantizeLinear(e, xs, xz)"
WEIGHT = "dw = DequantizeLinear(w, ws, wz)"
GIVEN = "q = QuantizeLinear(c, ys, yz)  y = DequantizeLinear(q, ys, yz)"
FLOAT, UINT8 = "float[1,3,4,6] x", "uint8[1,3,4,6] x"
MODELS = {
    "a float weight": (FLOAT, f"{FED} c = Conv(d, fw) {GIVEN}"),
    "codes fed": (UINT8, f"d = DequantizeLinear(x, xs, xz) {WEIGHT} c = Conv(d, dw) {GIVEN}"),
    "codes fed to an operator of codes": (
        UINT8,
        "q = QLinearConv(x, xs, xz, w, ws, wz, ys, yz) y = DequantizeLinear(q, ys, yz)",
    ),
    "a bias of 8 bits": (
        FLOAT,
        f"{FED} {WEIGHT} db = DequantizeLinear(b8, bs, wz) c = Conv(d, dw, db) {GIVEN}",
    ),
    "a bias on another grid": (
        FLOAT,
        f"{FED} {WEIGHT} db = DequantizeLinear(b32, vs, vz) c = Conv(d, dw, db) {GIVEN}",
    ),
    "a weight that a float node reads too": (
        FLOAT,
        f"{FED} {WEIGHT} c = Conv(d, dw) {GIVEN} f = Conv(x, dw) z = Relu(f)",
    ),
    "a result that the world reads too": (FLOAT, f"{FED} {WEIGHT} c = Conv(d, dw) {GIVEN}"),
    "an edge without a pair": (
        FLOAT,
        f"{FED} {WEIGHT} c = Conv(d, dw) q = QuantizeLinear(c, ys, yz) "
        "f = DequantizeLinear(q, ys, yz) y = Add(f, k)",
    ),
    "a scale that constants make": (
        FLOAT,
        "s = Mul(xs, bs) e = QuantizeLinear(x, s, xz) d = DequantizeLinear(e, s, xz) "
        f"{WEIGHT} c = Conv(d, dw) {GIVEN}",
    ),
}
OUTPUTS = {
    "a weight that a float node reads too": "float[1,4,4,6] y, float[1,4,4,6] z",
    "a result that the world reads too": "float[1,4,4,6] y, float[1,4,4,6] c",
}


def model(
    fed: str,
    nodes: str,
    given: str = "float[1,4,4,6] y",
    opset: int = 17,
    **other: np.ndarray,
) -> bytes:
    text = (
        f'<ir_version: 10, opset_import: ["" : {opset}]> agraph ({fed}) => ({given}) {{ {nodes} }}'
    )
    made = onnx.parser.parse_model(text)
    for name, values in {**HELD, **other}.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    return made.SerializeToString()


def program_of(data: bytes, chip: str):
    target = read_target(chip)
    graph = optimized(upgraded(read_model(data, "m.onnx")).with_shapes())
    made = quantized(with_own_grids(graph, target), target)
    return lowered(made, target.rounding, target.runnable), made


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chip", ["tflite", "ara240", "rdk-x5"])
def test_it_gives_what_onnxruntime_gives(name, chip):
    fed, nodes = MODELS[name]
    data = model(fed, nodes, OUTPUTS.get(name, "float[1,4,4,6] y"))
    feed = {"x": REAL if fed == FLOAT else CODES}
    program, made = program_of(data, chip)
    sessions = [ExactSession(program)]
    if chip == "tflite":
        pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
        sessions.append(LiteRtSession(tflite_file(program, made), "m.tflite"))
    wanted = OrtSession(data, fusion="none").run(None, feed)
    for session in sessions:
        x = feed["x"]
        if tuple(session.inputs[0].shape) != x.shape:
            x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        for want, y in zip(wanted, session.run(None, {"x": x}), strict=True):
            y = y if y.shape == want.shape else y.transpose(0, 3, 1, 2)
            np.testing.assert_allclose(y, want, atol=float(HELD["ys"]) * 1.001)  # one code


WIDE = {
    "vs": np.float32(1e-4),
    "vz": np.uint16(1000),
    "us": np.float32(2e-4),
    "uz": np.uint16(100),
    "ws": np.float32(1e-5),
    "wz": np.int16(20000),
}


def wide_pair(name: str, scale: str = "vs", zero_point: str = "vz") -> str:
    codes = f"{name}_codes"
    return (
        f"{codes} = QuantizeLinear({name}, {scale}, {zero_point}) "
        f"{name}_real = DequantizeLinear({codes}, {scale}, {zero_point})"
    )


@pytest.mark.parametrize(
    "node",
    ["c = Mul(x_real, x_real)", "dw = DequantizeLinear(w, ws, wz) c = Conv(x_real, dw)"],
    ids=["product", "weights"],
)
def test_codes_of_16_bits_less_their_zero_points_do_not_wrap(node):
    """Both are beyond their type: 65535 squared, and -32768 less 20000."""
    weight = RNG.integers(-32768, 32768, (3, 3, 1, 1)).astype(np.int16)
    nodes = f"{wide_pair('x')} {node} {wide_pair('c', 'us', 'uz')} y = Identity(c_real)"
    data = model(FLOAT, nodes, "float[1,3,4,6] y", 21, **WIDE, w=weight)
    feed = {"x": 6 * np.abs(REAL)}
    (wanted,) = OrtSession(data, fusion="none").run(None, feed)
    (given,) = ExactSession(program_of(data, "ara240")[0]).run(None, feed)
    assert np.abs(wanted - given).max() <= 1.001 * WIDE["us"]


def test_pairs_that_say_the_same_are_one():
    nodes = (
        f"{FED} {WEIGHT} c = Conv(d, dw) "
        "q = QuantizeLinear(c, ys, yz) r = QuantizeLinear(c, ys, yz) "
        "f = DequantizeLinear(q, ys, yz) g = DequantizeLinear(r, ys, yz) y = Add(f, g)"
    )
    program, made = program_of(model(FLOAT, nodes), "ara240")
    assert [step.op for step in program.instructions].count("conv") == 1
    assert len(made.nodes("QuantizeLinear")) == 2


@pytest.mark.parametrize(
    ("nodes", "other", "what"),
    [
        (
            f"m = ReduceMax<keepdims=0>(x) e = QuantizeLinear(x, m, xz) "
            f"d = DequantizeLinear(e, m, xz) {WEIGHT} c = Conv(d, dw) {GIVEN}",
            {},
            "the scale of `e` is computed",
        ),
        (f"{FED} {WEIGHT} c = Conv(d, dw) {GIVEN}", {"xs": np.float32(0)}, "not a positive finite"),
        (
            "e = QuantizeLinear<axis=1>(x, xs, xz) d = DequantizeLinear<axis=1>(e, xs, xz) "
            f"{WEIGHT} c = Conv(d, dw) {GIVEN}",
            {"xs": np.float32([0.1, 0.2, 0.3]), "xz": np.uint8([1, 2, 3])},
            "is per channel",
        ),
    ],
    ids=["computed", "zero", "per channel"],
)
def test_what_is_no_grid_of_an_activation_is_refused_by_name(nodes, other, what):
    with pytest.raises(GraphError, match=what) as caught:
        program_of(model(FLOAT, nodes, **other), "ara240")
    assert caught.value.hint.startswith("quantize the model")
