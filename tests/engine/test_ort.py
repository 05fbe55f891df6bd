"""onnxruntime in one thread a session: the same bits, in order, and our errors instead of its."""

import numpy as np
import pytest

from pipeline.engine.ort import OrtSession
from pipeline.errors import GraphError
from pipeline.graph import parse_text

MODEL = parse_text("a (float[2] x) => (float[] y, float[] z) { y = Neg(x)  z = Exp(x) }").to_bytes()


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
