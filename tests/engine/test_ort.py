"""onnxruntime in one thread a session: the same bits, in order, and our errors instead of its."""

import sys

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession, optimized_by_onnxruntime
from npumake.errors import GraphError
from npumake.graph import parse_text

MODEL = parse_text("a (float[2] x) => (float[] y, float[] z) { y = Neg(x)  z = Exp(x) }").to_bytes()


def test_outputs_are_named_and_chosen_by_name():
    session = OrtSession(MODEL)
    assert (session.input_names, session.output_names) == (("x",), ("y", "z"))
    (z,) = session.run(["z"], {"x": np.zeros(2, np.float32)})
    assert z.tolist() == [1, 1]


@pytest.mark.parametrize("fusion", ["integers", "floats", "none"])
def test_an_open_session_holds_no_copy_of_its_file(fusion):
    model = bytes(bytearray(MODEL))
    holders = sys.getrefcount(model)
    session = OrtSession(model, fusion=fusion)
    assert sys.getrefcount(model) == holders
    assert session.output_names == ("y", "z")


def test_what_is_no_model_is_refused():
    with pytest.raises(GraphError, match="onnxruntime refuses the model"):
        OrtSession(b"no model")


@pytest.mark.parametrize("fusion", ["integers", "floats"])
def test_a_model_tried_in_every_way_prints_nothing(fusion, capfd):
    untyped = onnx.ModelProto.FromString(MODEL)
    untyped.graph.input[0].ClearField("type")
    with pytest.raises(GraphError, match="onnxruntime refuses the model"):
        OrtSession(untyped.SerializeToString(), fusion=fusion)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "feeds", [{}, {"x": np.zeros(3, np.float32)}, {"x": np.zeros(2)}, {"w": np.zeros(2)}]
)
def test_feeds_that_do_not_fit_are_refused(feeds):
    with pytest.raises(GraphError, match="onnxruntime cannot run the model"):
        OrtSession(MODEL).run(None, feeds)


@pytest.mark.parametrize("fusion", ["integers", "floats", "none"])
def test_a_branch_that_reads_what_was_moved_behind_a_grid_is_run(fusion):
    """onnxruntime's own rewriting ended the process here."""
    model = parse_text(
        """<ir_version: 8, opset_import: ["" : 17]> a (float[1,4] x) => (float[] y)
        <float s = {0.5}, uint8 z = {8}, int64[1] b = {1}, int64[1] e = {3}, float zero = {0}> {
            q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
            m = Slice(d, b, e, b)  t = ReduceMean<keepdims = 0>(m)  c = Greater(t, zero)
            y = If(c) <then_branch = t () => (float[] u) { u = Relu(m) },
                       else_branch = e () => (float[] v) { v = Neg(m) }>
        }"""
    ).to_bytes()
    (y,) = OrtSession(model, fusion=fusion).run(None, {"x": np.float32([[9, 1.4, 0.1, 9]])})
    assert y.tolist() == [[1.5, 0.0]]
    assert b"Slice" in optimized_by_onnxruntime(model)


def listed(values: np.ndarray) -> str:
    return "{" + ", ".join(str(int(v)) for v in values.ravel()) + "}"


@pytest.mark.parametrize("zero", ["z", "w"], ids=["shared", "of its own"])
def test_products_of_large_weights_are_added_without_overflow(zero):
    """Without VNNI onnxruntime adds two of them in 16 bits, unless it is told not to."""
    rng = np.random.default_rng(0)
    k, m = rng.integers(100, 128, (64, 8)), rng.integers(100, 128, (8, 2))
    model = parse_text(
        f"""a (float[1,64] x) => (float[1,2] y)
        <float s = {{1}}, float t = {{8192}}, float u = {{8388608}},
        int8 a = {{0}}, int8 z = {{0}}, int8 w = {{0}},
        int8[64,8] k = {listed(k)}, int8[8,2] m = {listed(m)}> {{
            qx = QuantizeLinear(x, s, a)    dx = DequantizeLinear(qx, s, a)
            dk = DequantizeLinear(k, s, z)    h = MatMul(dx, dk)
            qh = QuantizeLinear(h, t, a)    dh = DequantizeLinear(qh, t, a)
            dm = DequantizeLinear(m, s, {zero})    v = MatMul(dh, dm)
            qy = QuantizeLinear(v, u, a)    y = DequantizeLinear(qy, u, a)
        }}"""
    ).to_bytes()
    feeds = {"x": rng.integers(100, 128, (1, 64)).astype(np.float32)}
    (written,) = OrtSession(model, fusion="none").run(None, feeds)
    (integers,) = OrtSession(model).run(None, feeds)
    assert 64 < written.max() / 8388608 < 127  # or the end of the grid would hide it
    np.testing.assert_array_equal(integers, written)
