"""A model that outputs inner tensors into arrays of its caller."""

import numpy as np

from npumake.engine.observed_session import ObservedSession
from npumake.engine.ort import OrtSession
from npumake.graph import parse_text

GRAPH = parse_text("a (float[2,3] x) => (float[] y) { r = Relu(x)  e = Exp(r)  y = Neg(e) }")
NAMES = ("e", "x", "r")


def test_every_run_overwrites_the_arrays_and_changes_no_bit():
    watched = GRAPH.copy()
    watched.expose(NAMES)
    plain = OrtSession(watched.to_bytes())
    arrays = {name: np.empty((2, 3), np.float32) for name in NAMES}
    write = ObservedSession(GRAPH, NAMES).writer(arrays)
    for seed in range(3):
        feed = {"x": np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)}
        write(feed)
        for name, array in zip(NAMES, plain.run(None, feed), strict=True):
            assert arrays[name].tobytes() == array.tobytes()


def test_writers_of_one_session_do_not_share_arrays():
    session = ObservedSession(GRAPH, ["r"])
    arrays = [{"r": np.empty((2, 3), np.float32)} for _ in range(2)]
    for number, (write, _) in enumerate([(session.writer(each), each) for each in arrays]):
        write({"x": np.full((2, 3), number + 1, np.float32)})
    assert [each["r"].max() for each in arrays] == [1, 2]


def test_a_model_that_computes_nothing_outputs_its_input():
    graph = parse_text("a (float[4] x) => (float[4] y) { y = Identity(x) }")
    arrays = {"x": np.empty(4, np.float32)}
    ObservedSession(graph, ["x"]).writer(arrays)({"x": np.arange(4, dtype=np.float32)})
    assert arrays["x"].tolist() == [0, 1, 2, 3]


def test_a_model_with_branches_runs_as_it_is():
    text = """a (float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[4] b) { b = Abs(x) }> }"""
    arrays = {name: np.empty(4, np.float32) for name in "xy"}
    feeds = {"x": np.array([1, -2, 3, -4], "f"), "c": np.array(True)}
    ObservedSession(parse_text(text), "xy").writer(arrays)(feeds)
    assert arrays["x"].tolist() == feeds["x"].tolist()
    assert arrays["y"].tolist() == (-feeds["x"]).tolist()
