"""Sums: what a layer hands out in int32 where only the CPU reads it, and where it does not."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.bundle.archive import Bundle
from npumake.debug.compare import compare
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import joined
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration, LayerTypes, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.precision.precision_candidates import all_but, candidates
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import with_qdq
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

X5, NASH, ARA = (read_target(name) for name in ("rdk-x5", "nash-e", "ara240"))
X3 = read_target("rdk-x3")
CONSTANTS = """float[3,2,3,3] w = {WEIGHTS}, float[3] b = {0.5,-1,2}, float[3,3,1,1] u =
{1,-2,3,4,5,-6,7,8,-9}, float[2,3] m = {1,-2,3,4,5,-6}, float[2] n = {3,-1},
float[2,1,1,1] k = {2,3}, int64[2] flat = {1,-1}"""
POOLED = "c = Conv(x, w)  r = Relu(c)  g = GlobalAveragePool(r)  f = Flatten(g)"
CONV = "y = Conv<pads=[1,1,1,1]>(x, w, b)"


def graph(body, outputs="y", more=""):
    rng = np.random.default_rng(1)
    weights = ",".join(f"{value:.3f}" for value in rng.normal(size=54))
    made = ", ".join(f"float[] {name}" for name in outputs.split())
    constants = CONSTANTS.replace("WEIGHTS", weights)
    text = f"a (float[1,2,6,6] x) => ({made}) <{more}{constants}> {{ {body} }}"
    return upgraded(parse_text(text)).with_shapes()


def feeds(count=3):
    rng = np.random.default_rng(0)
    return [{"x": rng.normal(size=(1, 2, 6, 6)).astype(np.float32)} for _ in range(count)]


def calibrated(model, target=X5, asked=Quantization()):  # noqa: B008
    found = ranges(model, observe(model, feeds()), Calibration("max"))
    return with_qdq(model, {n: grids_of(*r, target) for n, r in found.items()}, target, asked)


def program(model, target=X5, asked=Quantization()):  # noqa: B008
    return lowered(quantized(calibrated(model, target, asked), target), target.rounding)


def handing_out(model, target=X5, asked=Quantization()):  # noqa: B008
    return {node.name for node in plan_precision(model, asked, target).sums}


def of_sums(found):
    """The tensors in int32, and what dequantizes each."""
    return {
        name: next(step for step in found.instructions if name in step.inputs)
        for name, tensor in found.tensors.items()
        if tensor.dtype == "int32"
    }


def test_the_sums_are_exact_and_dequantized_by_the_scale_of_each_channel():
    found = program(graph(CONV))
    (sums,) = of_sums(found)
    conv, real = (s for s in found.instructions if sums in (*s.inputs, *s.outputs))
    codes, made, answer = ReferenceSession(found).run([conv.inputs[0], sums, "y"], feeds()[0])
    x = np.pad(codes[0].astype(np.int64), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    weight = conv.constants["weight"].astype(np.int64)
    oracle = np.einsum("chwij,ocij->ohw", windows, weight)
    oracle += conv.constants["bias"].astype(np.int64)[:, None, None]
    assert made[0].tolist() == oracle.tolist()
    assert real.constants["scale"].shape == (1, 3, 1, 1)
    assert answer.tolist() == (made.astype(np.float32) * real.constants["scale"]).tolist()


def test_an_answer_keeps_what_8_bits_would_lose():
    model, fed = graph(CONV), feeds()[0]
    meant = OrtSession(model.to_bytes()).run(None, fed)[0]
    sums, narrow = (
        ExactSession(program(model, target)).run(None, fed)[0]
        for target in (X5, replace(X5, sums=(), form=None))
    )
    assert np.square(sums - meant).sum() < np.square(narrow - meant).sum() * 0.8


@given(st.integers(0, 2**31), st.sampled_from([0.5, 30.0, 3000.0]))
@examples(40)
def test_both_engines_have_the_same_sums_whether_floats_hold_them_or_not(seed, size):
    """A bias this large is beyond 2**24 steps."""
    rng = np.random.default_rng(seed)
    model = graph(CONV)
    bias = onnx.load_from_string(model.to_bytes())
    (held,) = (t for t in bias.graph.initializer if t.name == "b")
    values = (size * rng.normal(size=3)).astype(np.float32)
    held.CopyFrom(onnx.numpy_helper.from_array(values, "b"))
    found = program(type(model).from_bytes(bias.SerializeToString()))
    names = [*of_sums(found), "y"]
    for a, b in zip(
        ReferenceSession(found).run(names, feeds()[0]),
        ExactSession(found, watched=names).run(names, feeds()[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_what_is_made_is_valid_onnx_and_nearly_the_same_in_stock_onnxruntime():
    made = quantized(calibrated(graph(CONV)), X5)
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    exact = ReferenceSession(lowered(made, X5.rounding)).run(None, feeds()[0])[0]
    stock = OrtSession(made.to_bytes()).run(None, feeds()[0])[0]
    np.testing.assert_allclose(stock, exact, rtol=1e-4, atol=1e-4)


KEPT = {  # the project or the model asks for codes
    "a clamp": ("c = Conv<pads=[1,1,1,1]>(x, w, b)  y = Relu(c)", "y", Quantization()),
    "outputs": (CONV, "y", Quantization(outputs="int8")),
    "outputs of int16": (CONV, "y", Quantization(outputs="int16")),
    "a layer": (CONV, "y", Quantization(layers={"y": LayerTypes(output="int8")})),
    "a name": (CONV, "y", Quantization({"y": "int8"})),
    "int16": (CONV, "y", Quantization({"*": "int16"})),
    "a dilation": ("y = Conv<dilations=[2,2]>(x, w)", "y", Quantization()),
    "the CPU": (CONV, "y", Quantization(cpu=("y",))),
    "another reader": (f"{CONV}  z = Abs(y)", "y z", Quantization()),
    "moved by the chip": ("c = Conv(x, w)  y = Reshape(c, flat)", "y", Quantization(mode="full")),
}


@pytest.mark.parametrize("case", KEPT)
def test_codes_are_handed_out_where_they_are_asked_for(case):
    body, outputs, asked = KEPT[case]
    assert handing_out(graph(body, outputs), X5, asked) == set()
    assert not of_sums(program(graph(body, outputs), X5, asked))


def test_only_the_operators_that_are_documented_hand_out_sums():
    gemm, transposed = f"{POOLED}  y = Gemm<transB=1>(f, m, n)", "y = ConvTranspose(x, k)"
    found = {
        target.name: [bool(handing_out(graph(body), target)) for body in (CONV, gemm, transposed)]
        for target in (X5, NASH, ARA)
    }
    assert found == {
        "rdk-x5": [True, True, False],
        "nash-e": [True, False, False],
        "ara240": [False, False, False],
    }


def test_a_layer_that_reads_int16_makes_int16():
    model = graph("a = Abs(x)  c = Conv(a, w)  t = Transpose<perm=[0,2,3,1]>(c)", "t")
    asked = Quantization(layers={"c": LayerTypes(input="int16")})
    plan = plan_precision(model, asked, X5)
    assert not plan.sums
    assert {value.name: type for value, type in plan.makes.items()} == dict.fromkeys(
        "xact", "int16"
    )
    found = ExactSession(program(model, X5, asked)).run(None, feeds()[0])[0]
    meant = OrtSession(model.to_bytes()).run(None, feeds()[0])[0]
    assert np.abs(found - meant).max() < np.abs(meant).max() / 100


def test_of_all_promoted_but_one_a_layer_with_sums_keeps_them():
    model = graph("a = Abs(x)  c = Conv(a, w)  r = Relu(c)  y = Conv(r, u)")
    assert set(candidates(model, X5, Quantization(), "int16")) == {"a", "c", "y"}
    without_y, without_c = all_but(model, X5, Quantization(), ["y", "c"], "int16")
    plan = plan_precision(model, without_y, X5)
    assert {node.name for node in plan.sums} == {"y"}
    (layer,) = plan.sums
    assert plan.reads[layer, 0] == "int8"
    assert {plan.makes[value] for value in plan.makes} == {"int16"}
    others = plan_precision(model, without_c, X5)
    assert {value.name: type for value, type in others.makes.items()}["r"] == "int8"


MOVED = "c = Conv(x, w)  t = Transpose<perm=[0,2,3,1]>(c)  y = Reshape(t, flat)"


def test_a_chip_moves_sums_where_it_only_transposes_and_int16_behind_other_moves():
    found = joined(program(graph(MOVED.replace("Reshape(t, flat)", "Identity(t)"))))
    ops = [step.op for step in found.instructions]
    assert ops[:4] == ["quantize", "conv", "transpose", "dequantize"]
    plan = plan_precision(graph(MOVED), Quantization(), X5)
    assert [node.op_type for node in plan.nodes] == ["Conv", "Transpose", "Reshape"]
    assert {str(value.name): type for value, type in plan.makes.items() if value.name != "x"} == (
        dict.fromkeys("cty", "int16")
    )


def test_a_chip_that_moves_no_sums_leaves_the_transpose_to_the_cpu():
    assert [n.op_type for n in plan_precision(graph(MOVED), Quantization(), X3).sums] == ["Conv"]


def test_transposed_sums_are_the_transposed_answer_bit_for_bit():
    moved = (
        "c = Conv<pads=[1,1,1,1]>(x, w, b) "
        "t = Transpose<perm=[0,2,3,1]>(c)  y = Transpose<perm=[0,3,1,2]>(t)"
    )
    turned, plain = program(graph(moved)), program(graph(CONV))
    assert [step.op for step in joined(turned).instructions].count("transpose") == 2
    for feed in feeds():
        (wanted,) = ReferenceSession(plain).run(None, feed)
        for session in (ReferenceSession, ExactSession):
            assert session(turned).run(["y"], feed)[0].tolist() == wanted.tolist()


ONE_HEAD = "float[1,2,3,3] o = {WEIGHTS}, float[1] ob = {0.5}, "
TWO_HEADS = "float[2,2,3,3] o = {WEIGHTS}, float[2] ob = {0.5,-1}, "
TURNS = ("0,2,3,1", "0,3,1,2", "2,3,0,1", "3,2,1,0")


@pytest.mark.parametrize("perm", TURNS)
@pytest.mark.parametrize("target", ["rdk-x5", "rdk-ultra", "nash-e", "nash-m", "rdk-x3"])
def test_one_channel_is_the_first_of_two_bit_for_bit(target, perm):
    """The scale of its sums is a scalar, that of two an array. Each is transposed twice."""
    axes, rng, answers = [int(axis) for axis in perm.split(",")], np.random.default_rng(4), []
    weights = [f"{value:.3f}" for value in rng.normal(size=36)]
    turn = f"Transpose<perm=[{perm}]>"
    body = f"c = Conv<pads=[1,1,1,1]>(x, o, ob)  t = {turn}(c)  y = {turn}(t)"
    for text, count in ((ONE_HEAD, 18), (TWO_HEADS, 36)):
        model = graph(body, more=text.replace("WEIGHTS", ",".join(weights[:count])))
        found = program(model, read_target(target))
        assert len(of_sums(found)) == (3 if read_target(target).moved_sums else 1)
        runs = [run(found).run(None, feeds()[0])[0] for run in (ReferenceSession, ExactSession)]
        assert runs[0].tolist() == runs[1].tolist()
        answers.append(runs[0])
    channels = [axes[axis] for axis in axes].index(1)
    assert answers[0].tolist() == np.take(answers[1], [0], channels).tolist()


@pytest.mark.parametrize("target", [X5, NASH], ids=["rdk-x5", "nash-e"])
def test_sums_of_weights_with_one_scale_move_too(target):
    one_scale = replace(target, weights=replace(target.weights, per_channel=False))
    turned = "c = Conv<pads=[1,1,1,1]>(x, w, b)  y = Transpose<perm=[0,2,3,1]>(c)"
    whole, moved = (program(graph(body), one_scale) for body in (CONV, turned))
    answers = [ReferenceSession(found).run(None, feeds()[0])[0] for found in (whole, moved)]
    assert answers[0].tolist() == np.moveaxis(answers[1], -1, 1).tolist()


def test_a_join_of_sums_goes_with_them_where_the_chip_moves_none_and_one_of_codes_stays():
    both = "c = Conv(x, w)  d = Conv(x, w, b)  y = Concat<axis=1>(c, d)"
    assert handing_out(graph(both), X3) == {"c", "d"}
    assert handing_out(graph(both)) == set()
    mixed = "c = Conv(x, w)  d = Conv(x, w, b)  r = Relu(d)  y = Concat<axis=1>(c, r)"
    assert handing_out(graph(mixed)) == set()
    assert "Concat" in {n.op_type for n in plan_precision(graph(mixed), Quantization(), X5).nodes}


def test_a_layer_that_the_cpu_goes_on_with_hands_out_sums_too():
    model = graph("c = Conv(x, w)  g = Softmax<axis=1>(c)  y = Conv(g, u)")
    assert handing_out(model) == {"c", "y"}
    assert handing_out(model, X5, Quantization(npu=("Softmax(*)",))) == {"y"}


@pytest.mark.parametrize(
    "behind", ["y = Gemm<transB=1>(f, m, n)", "z = Gemm<transB=1>(f, m, n)  y = Neg(z)"]
)
def test_a_gemm_becomes_a_conv_whose_sums_the_cpu_lays_out(behind):
    model = graph(f"{POOLED}  {behind}")
    target = replace(X5, operators=tuple({*X5.operators} - {"Neg"}))
    made = quantized(calibrated(model, target), target)
    assert "Gemm" not in {node.op_type for node in made.nodes()}
    found = lowered(made, X5.rounding, X5.runnable)
    (step,) = of_sums(found).values()
    assert step.op == "dequantize"
    plain = replace(target, gemm_as_conv=False)
    gemm = lowered(quantized(calibrated(model, plain), plain), X5.rounding, X5.runnable)
    for one, other in zip(
        ReferenceSession(found).run(None, feeds()[0]),
        ReferenceSession(gemm).run(None, feeds()[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_table_shows_the_layer_on_the_unit_with_int32():
    model = graph(f"{POOLED}  y = Gemm<transB=1>(f, m, n)")
    before = calibrated(model)
    rows = compare(model, before, quantized(before, X5), feeds(), X5).rows
    shown = {row.node: (row.on, row.dtype) for row in rows}
    assert shown["y"] == ("BPU", "int8/int32")


def test_a_bundle_holds_them(tmp_path):
    found = program(graph(CONV))
    Bundle("rdk-x5", found, {}).save(tmp_path / "m.hybrid")
    again = Bundle.load(tmp_path / "m.hybrid").program
    for a, b in zip(
        ReferenceSession(found).run(None, feeds()[0]),
        ReferenceSession(again).run(None, feeds()[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
