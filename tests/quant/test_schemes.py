"""The scales of every scheme of SyNAP's are those of a NumPy oracle that knows no code of ours."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import array, parse_text, producer, upgraded
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.reader import read_target

RNG = np.random.default_rng(0)
NPU = read_target("sl1680")
LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767)}
SCHEMES = {
    "uint8": ("uint8", "asymmetric_affine"),
    "int8 affine": ("int8", "asymmetric_affine"),
    "int8 per channel": ("int8", "perchannel_symmetric_affine"),
    "int8 fixed point": ("int8", "dynamic_fixed_point"),
    "int16 fixed point": ("int16", "dynamic_fixed_point"),
}
Codes = tuple[np.ndarray, np.ndarray]  # scale and zero point


def oracle(values: np.ndarray, dtype: str, scheme: str, is_weight: bool) -> Codes:
    """Twenty lines: real = scale * (q - zero_point), q in the limits of dtype."""
    lowest, highest = LIMITS[dtype]
    if scheme == "dynamic_fixed_point":  # scale = 2**-fl, the finest that holds all values
        fl = np.floor(np.log2(highest / np.abs(values).max()))
        return np.float32(2.0**-fl), np.int64(0)
    if scheme == "perchannel_symmetric_affine" and is_weight:
        largest = np.abs(values).max(axis=tuple(range(1, values.ndim)))
        return (largest / highest).astype(np.float32), np.zeros(len(values), np.int64)
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    scale = np.float32((high - low) / (highest - lowest))
    return scale, np.int64(np.rint(lowest - low / scale))


def model():
    """Two Convs, a depthwise one, a Gemm; channels of very different sizes, biases beyond them."""
    shapes = {"w1": (6, 3, 3, 3), "w2": (6, 1, 3, 3), "w3": (4, 6, 1, 1), "w4": (5, 4)}
    texts = []
    for name, shape in shapes.items():
        spread = np.exp(RNG.normal(size=(shape[0],) + (1,) * (len(shape) - 1)))
        weight = np.round(RNG.normal(size=shape) * spread * 0.1 + 0.02, 4)
        bias = np.round(RNG.normal(size=shape[0]) * 2, 4)
        for key, values in ((name, weight), (f"b{name}", bias)):
            dims = ",".join(map(str, values.shape))
            numbers = ",".join(f"{x:g}" for x in values.ravel())
            texts.append(f"float[{dims}] {key} = {{{numbers}}}")
    body = """c = Conv<pads=[1,1,1,1]>(x, w1, bw1)  r = Relu(c)
        d = Conv<group=6, pads=[1,1,1,1]>(r, w2, bw2)
        e = Conv(d, w3, bw3)  g = GlobalAveragePool(e)  f = Flatten(g)
        y = Gemm<transB=1>(f, w4, bw4)"""
    text = f"a (float[1,3,8,8] x) => (float[] y) <{', '.join(texts)}> {{ {body} }}"
    return upgraded(parse_text(text)).with_shapes()


MODEL = model()
FEEDS = [{"x": RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]


def calibrated(dtype: str, scheme: str):
    asked = Quantization(types=({"*": dtype},), scheme=scheme)
    target = with_scheme(NPU, asked)
    found = ranges(MODEL, observe(MODEL, FEEDS), Calibration("max"))
    grids = {name: grids_of(*span, target) for name, span in found.items()}
    return with_qdq(MODEL, grids, target, asked)


def observed() -> dict[str, np.ndarray]:
    watched = MODEL.copy()
    names = [str(n.outputs[0].name) for n in MODEL.nodes()]
    watched.expose(names)
    session = OrtSession(watched.to_bytes())
    runs = [session.run(None, feed) for feed in FEEDS]
    found = {name: np.stack(made) for name, *made in zip(names, *runs, strict=True)}
    return found | {"x": np.stack([feed["x"] for feed in FEEDS])}


VALUES = observed()


def moves(node) -> bool:
    return node is not None and node.op_type == "Flatten"


def per_tensor(values: np.ndarray) -> np.ndarray:
    """What is one number, however often it is written."""
    return values.reshape(-1)[0] if np.unique(values).size == 1 else values


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scale_and_zero_point_is_the_oracle_s(name: str):
    dtype, scheme = SCHEMES[name]
    seen = set()
    for node in calibrated(dtype, scheme).nodes("QuantizeLinear"):
        source = str(node.inputs[0].name).removesuffix(
            "_float"
        )  # of an output, which keeps its name
        constant = array(node.inputs[0])
        values = VALUES[source] if constant is None else constant
        if moves(producer(node.inputs[0])):
            continue  # on the grid of what it moves
        scale, zero_point = (array(value) for value in node.inputs[1:])
        expected = oracle(values, dtype, scheme, constant is not None)
        assert str(zero_point.dtype) == dtype
        assert per_tensor(scale) == pytest.approx(expected[0], rel=1e-6), source
        assert np.array_equal(per_tensor(zero_point), per_tensor(expected[1])), source
        seen.add(source)
    assert {"x", "w1", "w2", "w3", "w4", "r", "d", "e", "y"} <= seen


@pytest.mark.parametrize("name", SCHEMES)
def test_weights_have_the_type_of_the_activations_up_to_the_bundle(name: str):
    dtype, scheme = SCHEMES[name]
    made = with_integer_weights(calibrated(dtype, scheme))
    stored = [array(node.inputs[0]) for node in made.nodes("DequantizeLinear")]
    weights = [codes for codes in stored if codes is not None and codes.dtype != np.int32]
    assert {str(codes.dtype) for codes in weights} == {dtype}
    program = lowered(made, NPU.rounding)
    steps = [step for step in program.instructions if "weight" in step.constants]
    assert len(steps) == 4
    offset = dtype != "int16" and scheme == "asymmetric_affine"  # a code less its zero point
    kinds = {str(step.constants["weight"].dtype) for step in steps}
    assert kinds == {"int16" if offset else dtype}
    assert {str(s.constants["bias"].dtype) for s in steps} == {
        "int64" if dtype == "int16" else "int32"
    }


@pytest.mark.parametrize("name", SCHEMES)
def test_the_integers_compute_what_onnxruntime_does(name: str):
    made = with_integer_weights(calibrated(*SCHEMES[name]))
    exact, floats = ExactSession(lowered(made, NPU.rounding)), OrtSession(made.to_bytes())
    real = OrtSession(MODEL.to_bytes())
    for feed in FEEDS:
        (integers,), (literal,), (meant,) = (s.run(None, feed) for s in (exact, floats, real))
        step = float(np.ptp(literal)) / 100
        assert np.abs(integers - literal).max() <= step
        assert cosine(integers, meant) >= (0.9999999 if "int16" in name else 0.99)


def test_a_bias_beyond_int32_is_held_exactly_beside_weights_of_int16():
    program = lowered(with_integer_weights(calibrated("int16", "dynamic_fixed_point")), "half_even")
    biases = [s.constants["bias"] for s in program.instructions if "bias" in s.constants]
    assert max(int(np.abs(bias).max()) for bias in biases) > np.iinfo(np.int32).max


def test_another_chip_keeps_its_int8_weights_beside_int16():
    asked = Quantization(types=({"*": "int16"},))
    chip = read_target("ara240")
    found = ranges(MODEL, observe(MODEL, FEEDS), Calibration("max"))
    made = with_qdq(MODEL, {n: grids_of(*span, chip) for n, span in found.items()}, chip, asked)
    pairs = [n for n in made.nodes("QuantizeLinear") if array(n.inputs[0]) is not None]
    assert {str(array(node.inputs[2]).dtype) for node in pairs} == {"int8"}
