"""One interface for every artifact: the same feeds, the same outputs, the same refusals."""

from pathlib import Path

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.engine.lower import lowered
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.runtime import Session

GRAPH = """agraph (float[1,2] x) => (float[1,2] y)
    <float s = {0.25}, int8 z = {-3}, float t = {0.5}, int8 o = {0}, int8[2,2] w = {1, 2, 3, -4}> {
    xq = QuantizeLinear(x, s, z)  xd = DequantizeLinear(xq, s, z)
    wd = DequantizeLinear(w, t, o)
    m = MatMul(xd, wd)
    q = QuantizeLinear(m, t, o)  y = DequantizeLinear(q, t, o) }"""
X = {"x": np.array([[1.5, -2.0]], np.float32)}


@pytest.fixture(params=[".onnx", ".hybrid"])
def artifact(request, tmp_path) -> Path:
    graph, path = parse_text(GRAPH), tmp_path / f"small{request.param}"
    if request.param == ".onnx":
        graph.save(path)
    else:
        Bundle("any", lowered(graph, "half_even"), {}).save(path)
    return path


def test_an_artifact_computes_its_graph(artifact):
    session = Session(artifact)
    assert (session.input_names, session.output_names) == (("x",), ("y",))
    (y,) = session.run(None, X)
    assert y.dtype == np.float32
    assert y.tolist() == [[-2.0, 5.5]]  # (1.5, -2) @ (w / 2) = (-2.25, 5.5); half to even


def test_outputs_are_given_in_the_order_asked_for(artifact):
    session = Session(str(artifact))
    first, second = session.run(["y", "y"], X)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "feeds",
    [
        {},
        {"x": np.zeros((2, 2), np.float32)},
        {"x": np.zeros((2,), np.float32)},
        {"x": np.zeros((1, 2), np.float64)},
        {"x": np.zeros((1, 2), np.int8)},
        {**X, "other": np.zeros(1, np.float32)},
    ],
    ids=["missing", "shape", "rank", "float64", "int8", "unknown"],
)
def test_feeds_that_do_not_fit_are_refused(artifact, feeds):
    session = Session(artifact)
    with pytest.raises(GraphError):
        session.run(None, feeds)


def test_an_unknown_output_is_refused_with_the_known_ones(artifact):
    with pytest.raises(GraphError) as caught:
        Session(artifact).run(["z"], X)
    assert (caught.value.what, caught.value.hint) == ("no output `z`", "known: y")


@pytest.mark.parametrize("suffix", [".onnx", ".hybrid"])
def test_a_missing_file_is_refused(tmp_path, suffix):
    with pytest.raises(GraphError, match="no such file"):
        Session(tmp_path / f"absent{suffix}")


@pytest.mark.parametrize("name", ["model.pb", "model", "model.onnx.bak"])
def test_a_file_nobody_runs_is_refused_with_those_that_are(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(GraphError) as caught:
        Session(tmp_path / name)
    assert caught.value.hint == "known: .hybrid, .onnx, .tflite, .vmfb, .zip"


@pytest.mark.parametrize("suffix", [".onnx", ".hybrid"])
@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04" + bytes(60), bytes(range(256))])
def test_a_file_that_is_something_else_is_refused(tmp_path, suffix, data):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(data)
    with pytest.raises(GraphError):
        Session(path)


def test_a_batch_is_its_images_one_by_one(tmp_path):
    program, path = lowered(parse_text(GRAPH), "half_even"), tmp_path / "four.hybrid"
    Bundle("any", program, {}, batch=4).save(path)
    images = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    (four,) = Session(path).run(None, {"x": images})
    Bundle("any", program, {}).save(tmp_path / "one.hybrid")
    one = Session(tmp_path / "one.hybrid")
    np.testing.assert_array_equal(
        four, np.concatenate([one.run(None, {"x": image[None]})[0] for image in images])
    )
    with pytest.raises(GraphError, match="takes 4 images per run, not \\[1, 2\\]"):
        Session(path).run(None, {"x": images[:1]})


def test_ports_are_told_in_the_words_of_onnxruntime(artifact):
    session = Session(artifact)
    (fed,), (given) = session.get_inputs(), session.get_outputs()
    assert (fed.name, list(fed.shape), fed.type) == ("x", [1, 2], "tensor(float)")
    assert [port.name for port in given] == ["y"]


def test_pixels_are_fed_less_their_offset(artifact):
    session, pixels = Session(artifact), np.array([[130, 126]], np.uint8)
    for run, offset in [(session.run, 128), (session.run_feature, 0)]:
        wanted = session.run(None, {"x": pixels.astype(np.float32) - offset})
        np.testing.assert_array_equal(run(None, {"x": pixels}), wanted)
    floats = {"x": pixels.astype(np.float32)}
    np.testing.assert_array_equal(session.run(None, floats, 0), session.run(None, floats))


def test_many_runs_at_once_are_the_runs_one_by_one(artifact):
    session = Session(artifact)
    images = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    (made,) = session.run_batch(None, {"x": images})
    each = [session.run(None, {"x": image[None]})[0] for image in images]
    np.testing.assert_array_equal(made, np.concatenate(each))
    for wrong in ({}, {"x": images[:0]}, {"x": np.float32(1)}):
        with pytest.raises(GraphError, match="the same whole number of runs"):
            session.run_batch(None, wrong)


def test_threads_change_no_bit(artifact):
    one, four = (Session(artifact, threads=n).run(None, X) for n in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_the_constants_of_a_loaded_bundle_stay_in_its_file_and_outlive_it(tmp_path):
    path, program = tmp_path / "a.hybrid", lowered(parse_text(GRAPH), "half_even")
    Bundle("any", program, {}).save(path)
    loaded = Bundle.load(path)
    (weight,) = (s.constants["weight"] for s in loaded.program.instructions if s.op == "matmul")
    assert not weight.flags.owndata
    assert not weight.flags.writeable
    Bundle("other", program, {}).save(path)  # another file of that name
    assert weight.tolist() == [[1, 2], [3, -4]]
