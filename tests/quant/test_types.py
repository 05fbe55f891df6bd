"""Types: which tensor is int16, float16 or float where, and what is said when it cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.borders.images import mark_images
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError
from npumake.graph import annotations_of, array, is_kept_float, parse_text, producer, upgraded
from npumake.kernels.histogram import histogram
from npumake.kernels.measure import agreement
from npumake.project.sections import Calibration, LayerTypes, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import int16_ranges, ranges
from npumake.quant.calibration.statistics import Extremes, Statistics
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.grid_assignment import grids_of, grids_of_image
from npumake.quant.qdq.insert import with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target

W = "float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}, float[2] b = {0.1,-0.2}, int64 i = {3}"
GATE = """c = Conv(x, w, b)  r = Relu(c)  s = Sigmoid(r)  m = Mul(r, s)  d = Conv(m, w)
    p = AveragePool<kernel_shape=[2,2]>(d)  y = Softmax(p)"""
NPU, X5, X3 = (read_target(name) for name in ("ara240", "rdk-x5", "rdk-x3"))


def graph(body=GATE, y="y"):
    outputs = ", ".join(f"float[] {name}" for name in y.split())
    text = f"a (float[1,2,4,4] x) => ({outputs}) <{W}> {{ {body} }}"
    return upgraded(parse_text(text)).with_shapes()


def feeds(count=3):
    return [
        {"x": np.random.default_rng(i).normal(size=(1, 2, 4, 4)).astype(np.float32)}
        for i in range(count)
    ]


def quantized(model, target, asked, picture=False):
    if picture:
        mark_images(model, ["x"])
    target = with_scheme(target, asked)
    found = ranges(model, observe(model, feeds()), Calibration("max"))
    grids = {name: grids_of(*span, target) for name, span in found.items()}
    grids |= {"x": grids_of_image(target)} if picture else {}
    return with_integer_weights(with_qdq(model, grids, target, asked))


def types(made, target=NPU):
    """By node of the program, the type of what it makes."""
    program = lowered(made, "half_even", target.runnable)
    return {
        step.name: program.tensors[step.outputs[0]].dtype
        for step in program.instructions
        if step.op != "constant"
    }


def of(made, names, target=NPU):
    found = types(made, target)
    return " ".join(found[name] for name in names.split())


def test_a_node_is_int16_and_its_neighbors_are_not():
    made = quantized(graph(), NPU, Quantization({"m": "int16"}))
    assert of(made, "c s m d") == "int8 int8 int16 int8"
    assert made.opset == 21
    assert annotations_of(made) == ()


def test_where_a_chip_has_one_type_around_a_node_int16_spreads():
    made = quantized(graph(), X5, Quantization({"m": "int16"}))
    assert of(made, "x_quantized c s m d p", X5) == "int8 int16 int16 int16 int8 int8"


def test_what_is_said_of_a_node_stops_the_spreading():
    made = quantized(graph(), X5, Quantization({"m": "int16", "c": "int8"}))
    assert of(made, "c s m", X5) == "int8 int16 int16"


def test_without_int16_all_is_as_if_it_had_not_been_asked_for_and_a_note_says_so():
    plain, asked = (quantized(graph(), X3, Quantization(t)) for t in ({}, {"*": "int16"}))
    assert types(plain, X3) == types(asked, X3)
    assert asked.opset == 20
    (note,) = annotations_of(asked)
    names = "c (Conv), s (Sigmoid), m (Mul), d (Conv), p (AveragePool)"
    assert note == f"8 bits, rdk-x3 has no int16 for this operator: {names}"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"*": "int16"}, "int16 int16 int16 int16"),
        ({"*": "int16", "INPUTS": "int8"}, "int8 int16 int16 int16"),
        ({"m...": "int16"}, "int8 int8 int8 int16"),
        ({"m...": "int16", "d": "uint8"}, "int8 int8 int8 int8"),
        ({"d": "uint8", "m...": "int16"}, "int8 int8 int8 int8"),  # a mapping has no order
        (({"d": "uint8"}, {"m...": "int16"}), "int8 int8 int8 int16"),  # a list has
        ({"x...": "int16", "m...": "int8"}, "int8 int16 int16 int8"),
        ({"x": "int16"}, "int8 int8 int8 int8"),  # an input nobody reads as int16
        ({"r": "int16"}, "int8 int16 int8 int8"),  # a clamp is what absorbs it
    ],
)
def test_names_and_which_of_them_wins(rules, expected):
    made = quantized(graph(), NPU, Quantization(rules))
    assert of(made, "x_quantized c m d") == expected


def test_a_single_input_and_an_output():
    asked = Quantization(layers={"m": LayerTypes(inputs=(None, "int16"), output="int8")})
    made = quantized(graph(), NPU, asked)
    (mul,) = made.nodes("Mul")
    codes = [producer(value).inputs[0].dtype.name for value in mul.inputs]
    assert codes == ["INT8", "INT16"]
    assert of(made, "s m") == "int8 int8"


def test_8_bits_read_as_int16_lose_nothing():
    made = quantized(graph(), NPU, Quantization({"m": "int16"}))
    program = lowered(made, "half_even")
    (narrow, wide) = ReferenceSession(program).run(["r_quantized", "r_int16_quantized"], feeds()[0])
    zero_point = program.tensors["r_quantized"].zero_point
    assert np.array_equal(wide, 128 * (narrow.astype(int) - zero_point))


def test_a_picture_is_fed_in_8_bits_whatever_is_asked_for():
    made = quantized(graph(), NPU, Quantization({"*": "int16"}, outputs="int16"), picture=True)
    assert of(made, "x_quantized c") == "int8 int16"
    assert array(made.values()["x_scale"]) == 1


@pytest.mark.parametrize("picture", [False, True], ids=["numbers", "picture"])
@pytest.mark.parametrize("name", ["x", "INPUTS"])
def test_int16_of_an_input_that_no_node_reads_so_is_a_note(name: str, picture: bool):
    made = quantized(graph(), NPU, Quantization({name: "int16"}), picture=picture)
    assert of(made, "x_quantized") == "int8"
    assert annotations_of(made) == ("8 bits, no node reads int16 of an input of the model: x",)
    read = quantized(graph(), NPU, Quantization({name: "int16", "c": "int16"}))
    assert annotations_of(read) == ()


def test_what_only_moves_values_goes_with_them():
    model = graph("c = Conv(x, w)  t = Transpose(c)  u = Transpose(t)  y = Conv(u, w)")
    made = quantized(model, NPU, Quantization({"c": "int16", "y": "int16"}))
    assert of(made, "c t u y") == "int16 int16 int16 int16"
    assert array(made.values()["u_scale"]) == array(made.values()["c_scale"])


@pytest.mark.parametrize("type", ["int8", "int16"])
@pytest.mark.parametrize("asked", [{}, {"*": "int16"}], ids=["8 bits", "int16"])
def test_a_model_answers_in_codes(type, asked):
    model = graph("c = Conv(x, w)  z = Relu(c)  t = Tanh(z)  y = Transpose(t)", y="y z")
    made = quantized(model, NPU, Quantization(asked, outputs=type))
    assert [value.name for value in made.outputs] == ["y", "z"]
    assert [value.dtype.name.lower() for value in made.outputs] == [type, type]
    session = ReferenceSession(lowered(made, "half_even"))
    for codes, again in zip(*(s.run(None, feeds()[0]) for s in (session, ort(made))), strict=True):
        assert codes.dtype == again.dtype == type
        assert np.abs(codes.astype(int) - again).max() <= (1 if type == "int8" else 200)


def test_float16_is_a_rounding_of_all_a_node_reads_and_makes():
    target = read_target("sl1680")
    model = graph("c = Conv(x, w, b)  m = Mul(c, c)  y = Exp(m)")
    made = quantized(model, target, Quantization({"m": "float16"}))
    assert [node.op_type for node in made.nodes("Cast")] == ["Cast"] * 4  # c and m, there and back
    both = quantized(model, target, Quantization({"c": "float16", "m": "float16"}))
    assert len(both.nodes("Cast")) == 6  # c is not rounded twice
    assert is_kept_float(*both.find("c"))
    held = array(both.find("c")[0].inputs[1])
    assert np.array_equal(held, held.astype(np.float16))
    (exact,), (again,) = (
        s.run(None, feeds()[0]) for s in (ReferenceSession(lowered(both, "half_even")), ort(both))
    )
    assert np.array_equal(exact, again)


def test_a_layer_with_a_bias_reads_what_float16_made():
    target = read_target("sl1680")
    model = graph("c = Conv(x, w, b)  m = Mul(c, c)  y = Conv(m, w, b)")
    made = quantized(model, target, Quantization({"m": "float16"}))
    assert of(made, "c y", target) == "uint8 uint8"
    (meant,), (exact,) = (
        s.run(None, feeds()[0]) for s in (ort(model), ReferenceSession(lowered(made, "half_even")))
    )
    assert agreement(meant, exact).cosine > 0.999


def test_float32_and_cpu_are_one():
    for asked in (Quantization({"m": "float32"}), Quantization(cpu=("m",))):
        program = lowered(quantized(graph(), NPU, asked), "half_even")
        assert [step.name for step in program.instructions if step.op == "onnx"] == ["m"]


def test_softmax_runs_on_a_chip_that_is_asked_to():
    assert "y" not in of_integers(Quantization())
    assert "y" in of_integers(Quantization(npu=("y",)))


def of_integers(asked):
    program = lowered(quantized(graph(), X5, asked), "half_even", X5.runnable)
    return {step.name for step in program.instructions if step.op != "onnx"}


def test_the_chip_cannot_be_asked_for_what_it_does_not_run():
    model = graph("c = Conv(x, w)  y = Neg(c)")
    (note,) = annotations_of(quantized(model, X5, Quantization(npu=("y",))))
    assert note == "CPU, rdk-x5 does not run this operator: y (Neg)"


def test_what_only_moves_is_quantized_next_to_floats_too_in_mode_full():
    model = graph("t = Transpose(x)  e = CumSum(t, i)  y = Transpose(e)")
    for mode, count in (("standard", 0), ("full", 2)):
        chip = types(quantized(model, NPU, Quantization(mode=mode)))
        assert list(chip.values()).count("int8") == 2 * count


def test_dynamic_fixed_point_has_scales_of_powers_of_two():
    made = quantized(graph(), NPU, Quantization(scheme="dynamic_fixed_point"))
    for node in made.nodes("QuantizeLinear", "DequantizeLinear"):
        scale, zero_point = (array(value) for value in node.inputs[1:])
        assert not zero_point.any()
        if zero_point.dtype != np.int32:
            assert (np.frexp(scale)[0] == 0.5).all()


@pytest.mark.parametrize("scheme", ["asymmetric_affine", "perchannel_symmetric_affine"])
def test_a_scheme_says_how_many_scales_a_weight_has(scheme):
    made = quantized(graph(), X5, Quantization(scheme=scheme))
    scale = array(made.values()["w_scale"])
    assert np.unique(scale).size == (1 if scheme == "asymmetric_affine" else 2)
    assert array(made.values()["x_zero_point"]) != 0


@pytest.mark.parametrize("method", ["kl", "mse", "max_percentile", "moving_average"])
def test_int16_has_a_bit_to_spare_above_all_that_was_measured_whatever_8_bits_saturate(method):
    model, chip = graph(), read_target("ara240")
    statistics = observe(model, feeds())
    found = ranges_by_method(model, statistics, Calibration(method, percentile=0.9), False)
    made = calibrated_with(model, found, chip, Quantization({"*": "int16"}))
    scale = float(array(made.values()["x_scale"]))
    low, high = statistics.tensors["x"].low, statistics.tensors["x"].high
    assert scale == pytest.approx(2 * max(-low, high) / 32767, rel=1e-6)
    assert max(map(abs, found.ranges["x"])) <= max(-low, high)


@pytest.mark.parametrize(("apart", "room"), [(1, 2), (60, 2), (100, 1.28), (1000, 1)])
def test_int16_has_no_bit_to_spare_where_small_channels_need_it(apart, room):
    sizes = np.array([1.0, 1.0, 1.0, apart], np.float32)
    statistics = Statistics(
        {"x": histogram(np.concatenate([-sizes, sizes]))}, {"x": Extremes(-sizes, sizes)}
    )
    low, high = int16_ranges(graph(), statistics)["x"]
    assert (low, high) == pytest.approx((-room * apart, room * apart), rel=1e-4)


def test_int16_is_closer_than_8_bits():
    meant = OrtSession(graph().to_bytes()).run(None, feeds()[0])
    off = []
    for asked in ({}, {"*": "int16"}):
        program = lowered(quantized(graph(), NPU, Quantization(asked)), "half_even")
        got = ReferenceSession(program).run(None, feeds()[0])
        off.append(1 - agreement(meant[0], got[0]).cosine)
    assert off[1] < off[0] / 20


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (Quantization({"cnv": "int16"}), "quantization.types.cnv"),
        (Quantization(({"c": "int8"}, {"cnv...": "int16"})), "quantization.types.1.cnv..."),
        (Quantization(layers={"w": LayerTypes("int8")}), "quantization.layers.w"),
        (Quantization(cpu=("c", "z")), "quantization.cpu.1"),
    ],
)
def test_a_name_that_means_nothing_is_an_error_at_its_key(asked, key):
    with pytest.raises(ProjectError) as caught:
        quantized(graph(), NPU, asked)
    assert caught.value.where == key


def ort(made):
    return OrtSession(made.to_bytes())


def test_a_node_beyond_a_documented_limit_is_the_cpus_in_every_stage():
    body = """c = Conv(x, w, b)  m = MaxPool<kernel_shape=[2,2], dilations=[{0},{0}]>(c)
        y = Conv(m, w)"""
    inside, outside = (quantized(graph(body.format(step)), X3, Quantization()) for step in (1, 2))
    assert of(inside, "c m y", X3) == "int8 int8 int32"
    assert of(outside, "c m y", X3) == "int32 float32 int32"
    assert annotations_of(inside) == ()
    assert annotations_of(outside) == (
        "CPU, beyond a limit of rdk-x3 that `npumake check` names: m (MaxPool)",
    )
