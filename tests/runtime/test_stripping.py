"""The border that a vendor's file removes: of the compiled program, by the vendors' names."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import joined
from npumake.graph import parse_text
from npumake.runtime.border import channel_scales, deleted_nodes, removable
from npumake.runtime.stripping import kept_notes, restored, stripped
from quant.test_sums import CONV, X5, feeds, graph, program

EVERY = ("Quantize", "Dequantize", "Transpose", "Cast", "Reshape", "Softmax")
NHWC = "c = Conv<pads=[1,1,1,1]>(x, w, b)  y = Transpose<perm=[0,2,3,1]>(c)"
CODES = """agraph (float[1,2] x) => (float[1,2] y)
    <float s = {0.25}, float t = {0.5}, int8 o = {0}, int8[2,2] w = {1, 2, 3, -4}> {
    xq = QuantizeLinear(x, s, o)  xd = DequantizeLinear(xq, s, o)  wd = DequantizeLinear(w, t, o)
    m = MatMul(xd, wd)
    q = QuantizeLinear(m, t, o)  d = DequantizeLinear(q, t, o)
    y = Softmax(d) }"""
PIXELS = """agraph (float[1,2,2,1] x) => (float[1,1,2,2] y)
    <float s = {1.0}, float t = {0.5}, int8 o = {0}, int8[1,1,1,1] w = {3}> {
    xq = QuantizeLinear(x, s, o)  xd = DequantizeLinear(xq, s, o)
    m = Transpose<perm=[0,3,1,2]>(xd)  mq = QuantizeLinear(m, s, o)  md = DequantizeLinear(mq, s, o)
    wd = DequantizeLinear(w, t, o)
    c = Conv(md, wd)  cq = QuantizeLinear(c, t, o)  y = DequantizeLinear(cq, t, o) }"""


def bundle(text):
    return Bundle("any", joined(lowered(parse_text(text), "half_even")), {})


def of_sums(body=CONV):
    return Bundle("rdk-x5", joined(program(graph(body))), {})


def gone(less):
    return [node["type"] for node in deleted_nodes(less)]


def test_types_go_over_and_over_until_none_is_left_at_the_border():
    less = stripped(bundle(CODES), ("Dequantize", "Softmax", "Quantize"), ())
    assert sorted(gone(less)) == ["Dequantize", "Quantize", "Softmax"]
    assert [less.program.tensors[name].dtype for name in less.program.outputs] == ["int8"]
    assert not removable(less.program)
    assert not kept_notes(less)


@pytest.mark.parametrize("body", [CONV, NHWC])
def test_without_its_dequantize_a_conv_gives_its_sums_and_info_their_scales(body):
    whole, (feed, *_) = of_sums(body), feeds()
    less = stripped(whole, ("Dequantize",), ())
    (name,) = less.program.outputs
    record = next(node for node in deleted_nodes(less) if node["type"] == "Dequantize")
    assert less.program.tensors[name].dtype == "int32"
    (wanted,) = ReferenceSession(whole.program).run(None, feed)
    real = ReferenceSession(program(graph(body))).run([name], feed)[0].astype(np.float32)
    axis = (1, -1, 1, 1) if body == CONV else (1, 1, 1, -1)
    np.testing.assert_array_equal(real * np.float32(record["scales"]).reshape(axis), wanted)


def test_sums_keep_the_scales_of_their_channels_when_the_transpose_behind_them_goes_too():
    plain, turned = (stripped(of_sums(body), EVERY, ()) for body in (CONV, NHWC))
    wanted, made = (channel_scales(x, x.program.outputs[0]) for x in (plain, turned))
    assert made == wanted
    assert made[0] == 1
    assert len(made[1]) == 3


ONE = {
    "one channel": ("float[1,2,3,3] o = {1,-2,3,1,2,-1,4,0,2,-1,2,-3,1,2,1,-4,0,2}, ", "o", True),
    "weights with one scale": ("", "w", False),
}


@pytest.mark.parametrize("case", ONE)
def test_one_scale_is_recorded_with_the_axis_of_the_channels(case):
    """As that of several channels; a scale of its own for each."""
    constants, weight, per_channel = ONE[case]
    found = {}
    for name, perm in (("plain", "0,1,2,3"), ("NHWC", "0,2,3,1"), ("height last", "0,3,1,2")):
        turn = f"c = Conv<pads=[1,1,1,1]>(x, {weight})  y = Transpose<perm=[{perm}]>(c)"
        body = CONV.replace("(x, w, b)", f"(x, {weight})") if name == "plain" else turn
        model = graph(body, more=constants)
        target = replace(X5, weights=replace(X5.weights, per_channel=per_channel))
        whole = Bundle("rdk-x5", joined(program(model, target)), {})
        (wanted,) = ReferenceSession(whole.program).run(None, feeds()[0])
        less = stripped(whole, ("Dequantize",), ())
        (sums,) = ReferenceSession(less.program).run(None, feeds()[0])
        axis, scales = channel_scales(less, less.program.outputs[0])
        found[name] = axis
        assert len(scales) == sums.shape[axis]
        laid = np.float32(scales).reshape([-1 if at == axis else 1 for at in range(4)])
        np.testing.assert_array_equal(sums.astype(np.float32) * laid, wanted)
    assert found == {"plain": 1, "NHWC": 3, "height last": 2}


@pytest.mark.parametrize("name", ["{conv}", "{tensor}_HzCalibration", "{tensor}_HzDequantize"])
@pytest.mark.parametrize("body", [CONV, NHWC])
def test_the_name_of_a_conv_or_of_its_tensor_is_that_of_the_dequantize_behind_it(name, body):
    whole = of_sums(body)
    conv = next(step.name for step in whole.program.instructions if step.op == "conv")
    tensor = whole.program.outputs[0]
    less = stripped(whole, (), (name.format(conv=conv, tensor=tensor),))
    assert gone(less) == ["Dequantize"]
    assert not kept_notes(less)
    kept = [step.op for step in less.program.instructions]
    assert kept == [s.op for s in whole.program.instructions if s.op != "dequantize"]


@pytest.mark.parametrize("text", [CODES, PIXELS])
def test_every_step_that_computes_stays_whatever_is_named(text):
    whole = bundle(text)
    names = [step.name for step in whole.program.instructions]
    less = stripped(whole, EVERY, names)
    kinds = {"matmul", "conv"}
    assert [s.name for s in less.program.instructions if s.op in kinds] == [
        s.name for s in whole.program.instructions if s.op in kinds
    ]
    assert all(kind in EVERY for kind in gone(less))


def test_what_cannot_go_is_a_note_that_names_it_and_what_can():
    less = stripped(bundle(CODES), ("Transpose", "Dequantize"), ("nobody", "m"))
    notes = kept_notes(less)
    assert gone(less) == []
    wishes = ("Transpose", "Dequantize", "nobody", "m")
    assert all(wish in note for wish, note in zip(wishes, notes, strict=True))
    assert all("removed" in note for note in notes)
    assert len(notes) == 4


def test_a_transpose_goes_though_pixels_are_quantized_before_it():
    less = stripped(bundle(PIXELS), ("Transpose",), ())
    (name,) = less.program.inputs
    assert (gone(less), less.program.tensors[name].shape) == (
        ["Quantize", "Transpose"],
        (1, 1, 2, 2),
    )


@pytest.mark.parametrize("text", [CODES, PIXELS])
def test_what_was_stripped_is_put_back_as_it_was(text):
    whole = bundle(text)
    again = restored(stripped(whole, EVERY, ()), whole.program)
    rng = np.random.default_rng(0)
    shape = whole.program.tensors["x"].shape
    feed = {"x": rng.integers(-9, 9, shape).astype(np.float32)}
    assert again.program.outputs == whole.program.outputs
    ((made,), (wanted,)) = (ReferenceSession(x.program).run(None, feed) for x in (again, whole))
    np.testing.assert_array_equal(made, wanted)


def test_a_file_remembers_what_stays():
    less = stripped(bundle(CODES), (), ("nobody",))
    assert kept_notes(Bundle.from_bytes(less.to_bytes())) == kept_notes(less)
