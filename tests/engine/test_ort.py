"""onnxruntime in one thread a session: the same bits, in order, and our errors instead of its."""

import numpy as np
import pytest

from pipeline.engine.ort import OrtSession, threads
from pipeline.errors import GraphError
from pipeline.graph import parse_text

MODEL = parse_text("a (float[2] x) => (float[] y, float[] z) { y = Neg(x)  z = Exp(x) }").to_bytes()


@pytest.mark.parametrize("workers", ["1", "3"])
def test_results_come_in_the_order_of_the_feeds_on_any_number_of_threads(workers, monkeypatch):
    monkeypatch.setenv("NPUMAKE_THREADS", workers)
    assert threads() == int(workers)
    feeds = [{"x": np.array([i, -i], np.float32)} for i in range(20)]
    made = list(OrtSession(MODEL).run_all(iter(feeds)))
    assert [feed["x"][0] for feed, _ in made] == list(range(20))
    assert all(np.array_equal(y, -feed["x"]) for feed, (y, _) in made)


def test_outputs_are_named_and_chosen_by_name():
    session = OrtSession(MODEL)
    assert (session.input_names, session.output_names) == (("x",), ("y", "z"))
    (z,) = session.run(["z"], {"x": np.zeros(2, np.float32)})
    assert z.tolist() == [1, 1]


def test_what_is_no_model_is_refused():
    with pytest.raises(GraphError, match="onnxruntime refuses the model"):
        OrtSession(b"no model")


@pytest.mark.parametrize(
    "feeds", [{}, {"x": np.zeros(3, np.float32)}, {"x": np.zeros(2)}, {"w": np.zeros(2)}]
)
def test_feeds_that_do_not_fit_are_refused(feeds):
    with pytest.raises(GraphError, match="onnxruntime cannot run the model"):
        OrtSession(MODEL).run(None, feeds)
