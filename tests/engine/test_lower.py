"""Reading Q/DQ backwards: what becomes one instruction, and what is left to the CPU."""

import numpy as np
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError
from npumake.graph import parse_text

X = "float[1,2,3,4] x"


def ops(program):
    return [step.op for step in program.instructions]


def test_a_conv_its_bias_and_its_relu_are_one_instruction(chip, samples, quantized):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <float[1,2,1,1] w = {{1.0,-2.0}}, float[1] b = {{0.3}}>
        {{ c = Conv(x, w, b)  y = Relu(c) }}"""
    )
    program = lowered(quantized(graph, samples(graph), chip()), "half_up")
    assert ops(program) == ["quantize", "conv", "dequantize"]
    conv = program.instructions[1]
    zero = program.tensors["y_quantized"].zero_point
    assert (conv.attributes["low"], conv.attributes["high"]) == (zero, 127)
    assert conv.attributes["rounding"] == "half_up"
    assert conv.constants["weight"].tolist() == [[[[64]], [[-127]]]]  # 1 / (2 / 127) is 63.5


def test_a_relu_with_a_second_reader_in_front_is_an_instruction_of_its_own(
    chip, samples, quantized
):
    graph = parse_text(f"a ({X}) => (float[] y) {{ s = Add(x, x)  r = Relu(s)  y = Mul(s, r) }}")
    program = lowered(quantized(graph, samples(graph), chip()), "half_even")
    assert ops(program) == ["quantize", "add", "rescale", "mul", "dequantize"]


def test_an_operator_without_a_kernel_stays_float_between_integers(chip, samples, quantized):
    graph = parse_text(
        f"a ({X}) => (float[] y) {{ n = Neg(x)  c = CumSum(n, k)  y = Tanh(c) }}".replace(
            "(float[] y)", "(float[] y) <int64 k = {3}>"
        )
    )
    feeds = samples(graph)
    made = quantized(graph, feeds, chip())
    program = lowered(made, "half_even")
    assert ops(program) == [
        "quantize",
        "lookup",
        "dequantize",
        "onnx",
        "quantize",
        "lookup",
        "dequantize",
    ]
    exact = ReferenceSession(program).run(["y_quantized"], feeds[0])[0].astype(int)
    watched = made.copy()
    watched.expose(["y_quantized"])
    assert np.abs(exact - OrtSession(watched.to_bytes()).run(None, feeds[0])[0]).max() <= 1


def test_what_the_target_lacks_is_left_to_the_cpu(chip, samples, quantized):
    graph = parse_text(f"a ({X}) => (float[] y) {{ n = Neg(x)  t = Tanh(n)  y = Abs(t) }}")
    feeds = samples(graph)
    operators = ("Neg", "Abs")
    program = lowered(quantized(graph, feeds, chip(operators=operators)), "half_even", operators)
    left = [step for step in program.instructions if step.op == "onnx"]
    assert [step.name for step in left] == ["t"]
    exact = ReferenceSession(program).run(None, feeds[0])[0]
    float_ = OrtSession(graph.to_bytes()).run(None, feeds[0])[0]
    step = program.tensors["n_quantized"].scale + program.tensors["t_quantized"].scale
    assert np.abs(exact - float_).max() <= step  # tanh and abs have a slope of at most 1


@pytest.mark.parametrize(
    "body",
    [
        'y = Conv<auto_pad="SAME_UPPER">(x, w)',
        "b = ReduceSum<keepdims=0>(x, a)  y = Conv(x, w, b)",
        'y = MaxPool<kernel_shape=[2,2], auto_pad="VALID">(x)',
        "m = ReduceMin<keepdims=0>(x)  y = Clip(x, m)",
        "f = Flatten(x)  y = Gemm<alpha=0.5>(f, g)",
        'n = Neg(x)  y = Resize<mode="cubic">(n, , s)',
    ],
)
def test_what_does_not_fit_its_kernel_is_left_to_the_cpu_and_right(body, chip, samples, quantized):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <float[1,2,1,2] w = {{1.0,-2.0,3.0,0.5}},
        float[24,1] g = {{{",".join(map(str, range(24)))}}}, int64[3] a = {{1,2,3}},
        float[4] s = {{1.0,1.0,2.0,2.0}}>
        {{ {body} }}"""
    )
    feeds = samples(graph)
    made = quantized(graph, feeds, chip())
    program = lowered(made, "half_even")
    assert "y" in [step.name for step in program.instructions if step.op == "onnx"]
    float_, exact = (
        session.run(None, feeds[0])[0]
        for session in (OrtSession(graph.to_bytes()), ReferenceSession(program))
    )
    assert np.abs(exact - float_).max() <= 0.02 * np.abs(float_).max()


def test_a_bound_beyond_the_grid_saturates(chip, samples, quantized):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <float h = {{-0.9}}, float z = {{0.1}}>
        {{ s = Mul(x, z)  y = Clip(s, , h) }}"""
    )
    feeds = samples(graph)
    made = quantized(graph, feeds, chip("uint8"))
    (codes,) = ReferenceSession(lowered(made, "half_even")).run(["y_quantized"], feeds[0])
    assert (codes == 0).all()


def test_integer_weights_of_a_float_operator_are_dequantized_on_the_cpu(literal):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <int8[1,2,1,1] w = {{5,-7}}, float s = {{0.1}}, int8 z = {{2}}>
        {{ d = DequantizeLinear(w, s, z)  y = Conv(x, d) }}"""
    )
    program = lowered(graph, "half_even")
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 2, 3, 4)
    assert ops(program) == ["onnx", "onnx"]
    (made,) = ReferenceSession(program).run(None, {"x": x})
    assert np.array_equal(made, literal(graph, {"x": x}, ["y"])["y"])


def test_a_zero_point_of_the_weights_is_taken_off(literal):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <uint8[2,2,1,1] w = {{5,7,250,1}}, float[2] s = {{0.1,0.2}},
        uint8[2] z = {{120,3}}, float t = {{0.5}}, int8 o = {{0}}>
        {{ q = QuantizeLinear(x, t, o)  d = DequantizeLinear(q, t, o)
           v = DequantizeLinear<axis=0>(w, s, z)  c = Conv(d, v)
           r = QuantizeLinear(c, t, o)  y = DequantizeLinear(r, t, o) }}"""
    )
    program = lowered(graph, "half_even")
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 2, 3, 4)
    assert ops(program) == ["quantize", "conv", "dequantize"]
    (made,) = ReferenceSession(program).run(None, {"x": x})
    assert np.array_equal(made, literal(graph, {"x": x}, ["y"])["y"])


def test_from_one_grid_straight_to_another_is_one_rescale(literal):
    graph = parse_text(
        f"""a ({X}) => (float[] y) <float s = {{0.1}}, float t = {{0.3}}, int8 z = {{5}}>
        {{ q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
           r = QuantizeLinear(d, t, z)  y = DequantizeLinear(r, t, z) }}"""
    )
    program = lowered(graph, "half_even")
    assert ops(program) == ["quantize", "rescale", "dequantize"]
    x = np.linspace(-20, 20, 24, dtype=np.float32).reshape(1, 2, 3, 4)
    (exact,) = ReferenceSession(program).run(None, {"x": x})
    assert np.array_equal(exact, literal(graph, {"x": x}, ["y"])["y"])


def test_a_computed_scale_cannot_be_compiled():
    graph = parse_text(
        f"""a ({X}, float s) => (float[] y) <int8 z = {{0}}>
        {{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }}"""
    )
    with pytest.raises(GraphError, match="the scale of `q` is computed"):
        lowered(graph, "half_even")


def test_an_activation_per_channel_cannot_be_compiled():
    graph = parse_text(
        f"""a ({X}) => (float[] y) <float[2] s = {{0.1,0.2}}, int8[2] z = {{0,0}}>
        {{ q = QuantizeLinear<axis=1>(x, s, z)  y = DequantizeLinear<axis=1>(q, s, z) }}"""
    )
    with pytest.raises(GraphError, match="`q` is per channel"):
        lowered(graph, "half_even")


def test_every_tensor_an_instruction_reads_was_made_before(chip, samples, quantized):
    graph = parse_text(
        f"""a ({X}) => (float[] y, float[] z) <float[1,2,3,4] k = {{{",".join(["0.5"] * 24)}}}>
        {{ n = Neg(x)  t = Transpose(n)  z = Identity(t)  u = Transpose(t)  y = Add(u, k) }}"""
    )
    program = lowered(quantized(graph, samples(graph), chip()), "half_even")
    known = set(program.inputs)
    for step in program.instructions:
        assert known.issuperset(step.inputs)
        known.update(step.outputs)
    assert known.issuperset(program.outputs)
    assert program.outputs == ("y", "z")
