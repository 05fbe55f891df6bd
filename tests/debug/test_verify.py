"""A bundle against its quantized graph: equal is PASSED, one changed weight is not."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.debug.verify import Mismatch, changed_constants, mismatch, verified
from npumake.engine.lower import lowered
from npumake.errors import GraphError
from npumake.graph import parse_text

GRAPH = """agraph (float[1,2] x, float[1,2] x2) => (float[1,2] y, float[1,2] v)
    <float s = {0.25}, float t = {0.5}, int8 o = {0}, int8[2,2] w = {1, 2, 3, -4}> {
    xq = QuantizeLinear(x, s, o)  xd = DequantizeLinear(xq, s, o)
    wd = DequantizeLinear(w, t, o)
    m = MatMul(xd, wd)  q = QuantizeLinear(m, t, o)  y = DequantizeLinear(q, t, o)
    p = QuantizeLinear(x2, s, o)  v = DequantizeLinear(p, s, o) }"""
PROGRAM = lowered(parse_text(GRAPH), "half_even")
X = {name: np.array([[8.0, -4.0]], np.float32) for name in ("x", "x2")}


def changed(by: int) -> Bundle:
    """The bundle with the first weight changed by so much."""
    steps = list(PROGRAM.instructions)
    (at,) = (index for index, step in enumerate(steps) if step.op == "matmul")
    weight = steps[at].constants["weight"].copy()
    weight[0, 0] += by
    steps[at] = replace(steps[at], constants={**steps[at].constants, "weight": weight})
    return Bundle("any", replace(PROGRAM, instructions=tuple(steps)), {})


def test_what_was_not_changed_agrees_in_all_outputs():
    assert [one.lines for one in verified(PROGRAM, changed(0), X, 5)] == [0, 0]
    assert not list(changed_constants(PROGRAM, changed(0)))


def test_a_weight_changed_by_one_is_found():
    assert verified(PROGRAM, changed(1), X, 5) == [
        Mismatch("y", 0, 1, 0, 2),
        Mismatch("v", 0, 0, 0, 2),
    ]
    (line,) = changed_constants(PROGRAM, changed(1))
    assert line.endswith(": 1 of 4 values of weight")


def test_it_is_found_where_no_output_shows_it():
    still = {name: np.zeros_like(x) for name, x in X.items()}
    assert not any(one.lines for one in verified(PROGRAM, changed(1), still, 5))
    assert list(changed_constants(PROGRAM, changed(1)))


def test_the_digits_say_how_near_is_equal():
    near = np.array([1.0, 2.001, np.nan, 4.0]), np.array([1.0, 2.002, 3.0])
    assert mismatch("y", *near, 2) == Mismatch("y", 1, 0, 1, 4)
    assert mismatch("y", *near, 3) == Mismatch("y", 1, 1, 1, 4)
    assert mismatch("y", *near, 3).rate == 0.75


def test_another_model_is_refused():
    other = replace(PROGRAM, inputs=("x",))
    with pytest.raises(GraphError, match="the graph has the inputs"):
        verified(other, changed(0), X, 5)
