"""NaN and infinity are told of the node that makes them, not of those that hand them on."""

from __future__ import annotations

import numpy as np
import pytest

from debug.test_sensitivity import patient
from npumake.data.samples import Samples
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.finite import source_of_infinite
from npumake.debug.sensitivity import ModelUnderTest
from npumake.errors import GraphError, StageError
from npumake.graph import Graph, declare, parse_text, producer, shape
from npumake.stages.statistics import statistics


def graph(body: str) -> Graph:
    head = '<ir_version: 9, opset_import: ["" : 17]> agraph (float[1,4] x) => (float[1,4] y)'
    return parse_text(f"{head} {body}").with_shapes()


def fed(*rows: list[float]) -> Samples:
    feeds = [{"x": np.array([row], np.float32)} for row in rows]
    return Samples(tuple(f"{number}.npy" for number in range(len(feeds))), feeds.__getitem__)


LOGARITHM = graph("{ a = Relu(x)  b = Log(a)  y = Exp(b) }")
MASKED = graph("<float[4] m = {0, 0, 0, -inf}> { a = Add(x, m)  y = Softmax(a) }")
GOOD, BAD = [1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0, 3.0]


def test_the_node_that_makes_it_and_the_first_sample_are_named():
    found = source_of_infinite(LOGARITHM, fed(GOOD, BAD))
    assert str(found) == "Log `b` makes infinity of finite numbers, of sample 1.npy"
    assert found.hint.startswith("it may divide by zero")


def test_a_mask_of_infinities_is_the_models_own():
    found = source_of_infinite(MASKED, fed(GOOD))
    assert str(found) == "Add `a` makes infinity of its own constants, of sample 0.npy"
    assert "a large negative number" in found.hint


def test_where_all_is_finite_nobody_is_named():
    assert source_of_infinite(LOGARITHM, fed(GOOD)) is None


def test_the_stage_that_observes_names_it():
    with pytest.raises(StageError, match="`b` makes infinity of finite numbers"):
        statistics(LOGARITHM, fed(GOOD, BAD))


def test_blame_names_it():
    examined = patient("repvgg")
    broken = examined.calibrated.copy()
    last = broken.nodes("Conv")[-1]
    read = last.inputs[0]
    made = broken.insert("Log", [read], "logarithm", producer(read))
    declare(made, shape(read), read)
    broken.set_inputs(last, {0: made})
    with pytest.raises(GraphError, match="makes infinity of finite numbers, of sample 0") as caught:
        rank_causes(ModelUnderTest(broken, examined.samples))
    assert caught.value.where == "logarithm"
