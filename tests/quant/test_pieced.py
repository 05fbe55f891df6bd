"""Parts of an answer keep grids of their own; codes are spent where the reader tells them apart."""

import numpy as np
import pytest

from npumake.graph import annotations_of, is_kept_float, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.precision.uneven_concat import uneven_joins
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from quant.test_placement import graph, target

HEAD = "b = Mul(x, x)  p = Sigmoid(x)  c = Concat<axis=1>(b, p)  y = Transpose(c)"


def feeds(scale=1.0):
    rng = np.random.default_rng(0)
    return [{"x": scale * rng.normal(size=(1, 2, 4, 4)).astype(np.float32)} for _ in range(8)]


def found(body, scale):
    model = graph(body)
    return ranges(model, observe(model, feeds(scale)), Calibration("max"))


@pytest.mark.parametrize(
    ("body", "steps", "expected"),
    [
        (HEAD, {"b": 1.0, "p": 0.5}, ["c"]),
        (HEAD, {"b": 1.0, "p": 0.51}, []),
        (HEAD.replace("Transpose", "Neg"), {"b": 1.0, "p": 0.5}, []),  # not an answer
        (
            "u = Neg(x)  v = Exp(x)  c = Concat<axis=1>(u, u)  y = Concat<axis=1>(c, v)",
            {"u": 1.0, "v": 0.1},
            ["y"],
        ),
    ],
)
def test_uneven_parts_of_an_answer_are_not_joined_on_the_chip(body, steps, expected):
    assert [str(node.outputs[0].name) for node in uneven_joins(graph(body), steps)] == expected


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (Quantization(), True),
        (Quantization(npu=("c",)), False),
        (Quantization(types={"c": "int16"}), False),
        (Quantization(outputs="int8"), False),
    ],
)
def test_a_join_is_left_to_the_cpu_unless_more_is_asked_and_a_note_says_so(asked, kept):
    model = upgraded(graph(HEAD)).with_shapes()
    recipe = ranges_by_method(model, observe(model, feeds(3.0)), Calibration("max"), False)
    made = calibrated_with(model, recipe, target(), asked)
    (join,) = made.nodes("Concat")
    assert is_kept_float(join) == kept
    assert any("keeps its own 8 bits" in note for note in annotations_of(made)) == kept


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("a = Neg(x)  f = HardSwish(a)  y = Exp(f)", -3.0, None),
        ("a = Neg(x)  f = Sigmoid(a)  y = Neg(f)", -8.5, 8.5),
        ("a = Neg(x)  t = Transpose(a)  f = Sigmoid(t)  g = Mul(t, f)  y = Neg(g)", -6.0, None),
        ("a = Neg(x)  f = Sigmoid(a)  g = Mul(a, f)  y = Add(a, g)", None, None),  # a as it is
    ],
)
def test_codes_are_not_spent_where_the_function_behind_saturates(body, low, high):
    """Within 0.5: the next value that occurs."""
    wide, kept = found("a = Neg(x)  y = Neg(a)", 20.0)["a"], found(body, 20.0)["a"]
    assert kept.low == pytest.approx(wide.low if low is None else low, abs=0.5)
    assert kept.high == pytest.approx(wide.high if high is None else high, abs=0.5)


def test_an_answer_keeps_its_whole_range():
    model = graph("a = Neg(x)  y = Sigmoid(a)", y="a y")
    statistics = observe(model, feeds(20.0))
    measured = statistics.tensors["a"]
    assert ranges(model, statistics, Calibration("max"))["a"] == (measured.low, measured.high)
