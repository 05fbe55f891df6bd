"""Q/DQ and integers: standard ONNX that says on which grid each tensor lies."""

import numpy as np
import onnx
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import array, parse_text, producer
from npumake.kernels.measure import agreement
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.precision.grids import MAX_BIAS
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.target import Activations, Target, WeightGrid

PAIR = ["QuantizeLinear", "DequantizeLinear"]


def text(body, constants, x="1,2,3,4", y="y"):
    outputs = ", ".join(f"float[] {name}" for name in y.split())
    return parse_text(f"a (float[{x}] x) => ({outputs}) <{constants}> {{ {body} }}")


W = "float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}"
MODELS = {
    "a Relu": text("c = Conv(x, w)  y = Relu(c)", W),
    "a bias": text("y = Conv(x, w, b)", f"{W}, float[2] b = {{0.5,-70000.0}}"),
    "shared weights": text("c = Conv(x, w)  y = Conv(c, w)", W),
    "several readers": text("n = Neg(x)  a = Abs(n)  b = Exp(n)  y = Sub(a, b)", W),
    "an output that is read": text("n = Neg(x)  y = Exp(n)", W, y="n y"),
    "an output of a CPU node": text("n = Neg(x)  l = Sign(n)  y = Exp(l)", W, y="l y"),
    "unequal scales": text("e = Exp(x)  t = Tanh(x)  c = Concat<axis=1>(e, t)  y = Neg(c)", W),
    "a shape": text("n = Neg(x)  s = Shape(n)  e = Exp(n)  r = Reshape(e, s)  y = Tanh(r)", W),
    "a constant": text("y = Mul(x, k)", "float[2,1,1] k = {0.5,-7.0}"),
    "a channel of zeros": text(
        "y = Conv(x, w, b)", "float[2,2,1,1] w = {1.0,2.0,0.0,0.0}, float[2] b = {0.1,3.0}"
    ),
    "a Gemm": text("y = Gemm(x, w, b)", "float[2,2] w = {1.0,2.0,0.5,3.0}, float b = {2.0}", "3,2"),
    "one Resize": text("n = Neg(x)  y = Resize(n, , s)", "float[4] s = {1.0,1.0,2.0,2.0}"),
}
every_model = pytest.mark.parametrize("graph", MODELS.values(), ids=MODELS)


def target(dtype="int8", symmetric=False, per_channel=True, operators=None):
    scheme = (Activations(dtype, symmetric), WeightGrid("int8", per_channel))
    return Target("chip", "vendor", "NPU", *scheme, "half_even", operators=operators)


def feeds(graph):
    rng = np.random.default_rng(0)
    dims = tuple(graph.inputs[0].shape.numpy())
    return [{"x": rng.normal(size=dims).astype(np.float32)} for _ in range(3)]


def calibrated(graph, chip):
    found = ranges(graph, observe(graph, feeds(graph)), Calibration("max"))
    return with_qdq(graph, {name: grids_of(*r, chip) for name, r in found.items()}, chip)


def quantized(graph, chip=None):
    return with_integer_weights(calibrated(graph, chip or target()))


def ops(graph):
    return [node.op_type for node in graph.nodes()]


def outputs(graph):
    return OrtSession(graph.to_bytes()).run(None, feeds(graph)[0])


@every_model
@pytest.mark.parametrize(
    "chip",
    [target(), target(symmetric=True), target("uint8"), target(per_channel=False)],
    ids=["int8", "symmetric", "uint8", "per tensor"],
)
def test_both_graphs_are_valid_onnx_with_the_same_interface_and_nearly_the_same_numbers(
    graph, chip
):
    before, meant = graph.to_bytes(), outputs(graph)
    for made in (calibrated(graph, chip), quantized(graph, chip)):
        onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
        assert [v.name for v in made.inputs] == [v.name for v in graph.inputs]
        assert [v.name for v in made.outputs] == [v.name for v in graph.outputs]
        for a, b in zip(meant, outputs(made), strict=True):
            assert agreement(a, b).cosine > 0.995
    assert graph.to_bytes() == before  # a copy was edited


@every_model
def test_integer_weights_change_no_output_by_more_than_a_hair(graph):
    """Codes are what Q/DQ made of the weights all along; only the biases are rounded."""
    chip = target()
    for a, b in zip(outputs(calibrated(graph, chip)), outputs(quantized(graph, chip)), strict=True):
        off = np.abs(a - b)
        assert off.max() <= 0.01 * np.abs(a).max()  # a code may flip
        assert np.mean(off > 0) < 0.1


@every_model
def test_making_it_twice_gives_the_same_bytes(graph):
    assert quantized(graph).to_bytes() == quantized(graph).to_bytes()


def test_names_still_mean_something():
    made = quantized(text("c = Conv(x, w, b)  y = Relu(c)", f"{W}, float[2] b = {{0.5,1.0}}"))
    values = made.values()
    for name, dtype in {
        "x_quantized": "INT8",
        "x_dequantized": "FLOAT",
        "w_codes": "INT8",
        "w_scale": "FLOAT",
        "w_dequantized": "FLOAT",
        "b_codes": "INT32",
        "b_scale": "FLOAT",
        "c": "FLOAT",
        "y_float": "FLOAT",
        "y_quantized": "INT8",
        "y": "FLOAT",
    }.items():
        assert values[name].dtype.name == dtype
    assert "w" not in values
    assert "b" not in values


def test_a_clamp_shares_the_requantization_of_its_conv():
    made = quantized(MODELS["a Relu"])
    assert ops(made) == [*PAIR, "DequantizeLinear", "Conv", "Relu", *PAIR]


def test_a_tensor_is_quantized_once_however_many_read_it():
    made = quantized(MODELS["several readers"])
    assert ops(made).count("QuantizeLinear") == 5  # x n a b y
    assert len(made.values()["n_dequantized"].uses()) == 2


def test_what_only_moves_stays_on_the_grid_of_its_source():
    made = quantized(text("n = Neg(x)  y = Transpose(n)", W))
    values = made.values()
    assert array(values["y_scale"]) == array(values["n_scale"])
    assert array(values["y_zero_point"]) == array(values["n_zero_point"])


def test_shapes_and_parameters_have_no_grid():
    for name in ("a shape", "one Resize"):
        made = quantized(MODELS[name])
        for node in made.nodes("QuantizeLinear"):
            assert producer(node.inputs[0]) is None or producer(node.inputs[0]).op_type != "Shape"
        (node,) = made.nodes("Reshape", "Resize")
        makers = [producer(value) for value in node.inputs[1:] if value is not None]
        assert all(maker is None or maker.op_type == "Shape" for maker in makers)


def test_weights_that_two_nodes_share_are_stored_by_each():
    values = quantized(MODELS["shared weights"]).values()
    assert np.array_equal(array(values["w_codes"]), array(values["w_codes_1"]))


def test_the_inputs_of_a_concat_keep_their_own_scales():
    values = quantized(MODELS["unequal scales"]).values()
    scales = {float(array(values[f"{name}_scale"])) for name in ("e", "t", "c")}
    assert len(scales) >= 2
    assert float(array(values["c_scale"])) >= float(array(values["e_scale"]))


def test_a_constant_operand_lies_on_a_grid_like_an_activation():
    values = quantized(MODELS["a constant"]).values()
    assert values["k_codes"].dtype.name == "INT8"
    assert array(values["k_codes"]).ravel().tolist() == [127, -128]
    assert array(values["k_scale"]) == np.float32(7.5 / 255)


@pytest.mark.parametrize("bias", [3.0, -7e4, 1e9])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_bias_fits_int32_beside_its_accumulator(bias, per_channel):
    constants = f"float[2,2,1,1] w = {{1.0,2.0,0.0,0.001}}, float[2] b = {{0.1,{bias}}}"
    made = quantized(text("y = Conv(x, w, b)", constants), target(per_channel=per_channel))
    values = made.values()
    codes, scale = (array(values[f"b_{what}"]).astype(float) for what in ("codes", "scale"))
    assert np.abs(codes).max() <= MAX_BIAS * (1 + 1e-6)
    assert np.abs(codes * scale - [0.1, bias]).max() <= scale.max()
    one = array(values["x_scale"]) * array(values["w_scale"])
    assert np.array_equal(array(values["b_scale"]), one)


def test_a_channel_of_zeros_gives_its_bias():
    graph = MODELS["a channel of zeros"]
    made = quantized(graph)
    assert not array(made.values()["w_codes"])[1].any()
    (exact,) = ReferenceSession(lowered(made, "half_even")).run(None, feeds(graph)[0])
    assert np.abs(exact[:, 1] - 3.0).max() <= float(array(made.values()["y_scale"])) / 2


def test_one_bias_for_all_channels_becomes_one_code_for_each():
    values = quantized(MODELS["a Gemm"]).values()
    codes, scale = array(values["b_codes"]), array(values["b_scale"])
    assert codes.shape == scale.shape == (2,)
    assert np.allclose(codes * scale, 2.0, rtol=1e-4)


def test_the_float_side_of_a_border_stays_float():
    made = quantized(MODELS["an output of a CPU node"])
    assert made.values()["l"].is_graph_output()
    assert producer(made.values()["l"]).op_type == "Sign"


def test_the_cpu_reads_an_input_as_it_is_fed():
    made = quantized(text("n = Neg(x)  y = Sign(x)", W, y="n y"))
    (sign,) = made.nodes("Sign")
    assert sign.inputs[0] is made.inputs[0]


def test_what_the_target_lacks_is_not_quantized():
    made = quantized(MODELS["a Relu"], target(operators=("Softmax",)))
    assert ops(made) == ["Conv", "Relu"]
