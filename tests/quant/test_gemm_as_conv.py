"""Gemm as Conv: another form of the same integers, for a chip that has only the Conv."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, origin, parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.qdq.gemm_as_conv import gemm_as_conv
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import with_qdq
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target
from npumake.targets.target import Activations, Target, WeightGrid

CONSTANTS = """float[4,3] w = {1,-2,3,4,5,-6,7,8,-9,1,2,3},
    float[3,4] u = {1,2,-3,4,5,6,-7,8,9,1,2,3},
    float[3] b = {0.5,-1,2}, float one = {0.25}, float[3,3] v = {1,2,3,0,1,0,-1,0,2}"""
FLAT, TALL = "2,4", "2,4,1,1"
MODELS = {
    "no bias": ("y = Gemm(x, w)", FLAT),
    "a bias per channel": ("y = Gemm(x, w, b)", FLAT),
    "one bias for all": ("y = Gemm(x, w, one)", FLAT),
    "transposed": ("y = Gemm<transB=1>(x, u, b)", FLAT),
    "a clamp behind": ("g = Gemm(x, w, b)  y = Relu(g)", FLAT),
    "two": ("g = Gemm(x, w, b)  h = Relu(g)  y = Gemm(h, v)", FLAT),
    "two of one weight": ("g = Gemm(x, v)  y = Gemm(g, v)", "2,3"),
    "flattened before": ("n = Neg(x)  f = Flatten(n)  y = Gemm(f, w, b)", TALL),
    "flattened, of 2x2 pixels": ("n = Neg(x)  f = Flatten(n)  y = Gemm(f, w, b)", "2,1,2,2"),
    "read and given": ("y = Gemm(x, w, b)  z = Tanh(y)", FLAT),
}
GRIDS = {
    "int8": Activations("int8", False),
    "symmetric": Activations("int8", True),
    "uint8": Activations("uint8", False),
}
every_model = pytest.mark.parametrize("model", MODELS)


def graph_of(model: str) -> Graph:
    body, dims = MODELS[model]
    outputs = ", ".join(f"float[2,3] {name}" for name in "yz" if f"{name} =" in body)
    text = f"a (float[{dims}] x) => ({outputs}) <{CONSTANTS}> {{ {body} }}"
    return upgraded(parse_text(text)).with_shapes()


def chip(grid="int8", per_channel=True, as_conv=True) -> Target:
    scheme = (GRIDS[grid], WeightGrid("int8", per_channel))
    return Target("chip", "vendor", "NPU", *scheme, "half_even", gemm_as_conv=as_conv)


def feeds(graph):
    rng = np.random.default_rng(0)
    return [
        {"x": rng.normal(size=graph.inputs[0].shape.numpy()).astype(np.float32)} for _ in range(3)
    ]


def calibrated(graph, target, asked=Quantization()):  # noqa: B008
    found = ranges(graph, observe(graph, feeds(graph)), Calibration("max"))
    return with_qdq(graph, {n: grids_of(*r, target) for n, r in found.items()}, target, asked)


def exact(graph, target):
    return ReferenceSession(lowered(graph, target.rounding)).run(None, feeds(graph)[0])


@every_model
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("per_channel", [True, False], ids=["per channel", "per tensor"])
@pytest.mark.parametrize("type", [None, "int16"])
def test_the_integers_are_those_of_the_gemm_bit_for_bit(model, grid, per_channel, type):
    target, asked = chip(grid, per_channel), Quantization({"*": type} if type else {})
    made = calibrated(graph_of(model), target, asked)
    conv, gemm = quantized(made, target), quantized(made, replace(target, gemm_as_conv=False))
    assert "Gemm" in {node.op_type for node in gemm.nodes()}
    assert "Gemm" not in {node.op_type for node in conv.nodes()}
    for a, b in zip(exact(conv, target), exact(gemm, target), strict=True):
        np.testing.assert_array_equal(a, b)


@every_model
def test_what_is_made_is_valid_onnx_of_the_same_interface_and_numbers(model):
    graph = graph_of(model)
    before = calibrated(graph, chip())
    made = quantized(before, chip())
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    assert [str(v.name) for v in made.outputs] == [str(v.name) for v in graph.outputs]
    meant = OrtSession(before.to_bytes()).run(None, feeds(graph)[0])
    for a, b in zip(meant, OrtSession(made.to_bytes()).run(None, feeds(graph)[0]), strict=True):
        assert np.abs(a - b).max() <= 0.01 * np.abs(a).max()  # a bias is rounded, a code may flip


@every_model
def test_nothing_is_left_to_do_and_the_count_is_honest(model):
    made = calibrated(graph_of(model), chip())
    gemms = len(made.nodes("Gemm"))
    assert (gemm_as_conv(made), gemm_as_conv(made)) == (gemms, 0)


@every_model
def test_the_conv_has_the_name_the_origin_and_the_codes_of_the_gemm(model):
    before = calibrated(graph_of(model), chip())
    after = quantized(before, chip())
    for gemm in before.nodes("Gemm"):
        (conv,) = (node for node in after.nodes("Conv") if node.name == gemm.name)
        assert origin(conv) == origin(gemm)
    names = {f"{v.name}_quantized" for v in graph_of(model).outputs}
    assert names <= set(after.values())


def test_a_gemm_on_the_cpu_stays_one():
    made = calibrated(graph_of("two"), chip(), Quantization(cpu=("y",)))
    assert [n.name for n in quantized(made, chip()).nodes("Gemm")] == ["y"]


def test_the_d_robotics_chips_compute_a_gemm_as_a_conv():
    """Their documented conversion: Gemm -> Conv."""
    assert all(read_target(name).gemm_as_conv for name in ("rdk-x3", "rdk-x5", "rdk-ultra"))
