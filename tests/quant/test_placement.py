"""Placement: who runs on the chip, and whose range each tensor takes."""

import numpy as np
import pytest

from npumake.borders.images import images, mark_images
from npumake.graph import parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.precision.placement import (
    observed_tensors,
    on_chip,
    output_tensors,
    source_tensor,
)
from npumake.targets.target import Activations, Target, WeightGrid


def target(*operators):
    scheme = (Activations("int8", False), WeightGrid("int8", True))
    return Target("chip", "vendor", "NPU", *scheme, "half_even", operators=operators or None)


def graph(body, x="1,2,4,4", y="y"):
    outputs = ", ".join(f"float[] {name}" for name in y.split())
    return parse_text(
        f"""a (float[{x}] x) => ({outputs}) <float[2,2,1,1] w = {{1.0,-2.0,0.5,3.0}},
        int64[2] s = {{2,-1}}, float[4] twice = {{1.0,1.0,2.0,2.0}}, float six = {{6.0}}>
        {{ {body} }}"""
    )


def chosen(model, *operators):
    return [node.name for node in model.nodes() if node in on_chip(model, target(*operators))]


@pytest.mark.parametrize(
    ("body", "operators", "expected"),
    [
        ("c = Conv(x, w)  y = Relu(c)", (), "c y"),
        ("r = Reshape(x, s)  t = Tanh(r)  y = Reshape(t, s)", (), "t y"),  # passive at the border
        ("t = Tanh(x)  u = Transpose(t)  v = Transpose(u)  y = Log(v)", (), "t u v"),
        ("t = Tanh(x)  y = Concat<axis=1>(x, t)", (), "t y"),
        ("l = Log(x)  r = Reshape(l, s)  y = Tanh(r)", (), "y"),
        ("t = Tanh(x)  n = Neg(t)  y = Abs(n)", ("Tanh", "Abs"), "t y"),
        ("c = Conv(x, w)  y = Relu(c)", ("Conv",), "c y"),  # the clamp is part of the Conv
        ("c = Conv(x, w)  y = Relu(c)", ("Relu",), ""),  # and stays with it
        ("c = Conv(x, w)  r = Relu(c)  y = Add(c, r)", ("Conv", "Add"), "c y"),
        ('y = Conv<auto_pad="VALID">(x, w)', (), ""),  # no kernel
        ("y = Clip(x, , six)", (), "y"),
    ],
)
def test_who_runs_on_the_chip(body, operators, expected):
    assert chosen(graph(body), *operators) == expected.split()


def test_integers_do_not_run_on_the_chip():
    model = parse_text("a (int64[4] x) => (int64[] y) { a = Add(x, x)  y = Reshape(a, x) }")
    assert chosen(model) == []


def test_what_only_moves_takes_the_range_of_where_it_comes_from():
    model = graph(
        """t = Tanh(x)  p = MaxPool<kernel_shape=[2,2]>(t)  u = Transpose(p)
        z = Resize<mode="linear">(u, , twice)  y = Concat<axis=0>(z, z)"""
    )
    values = model.values()
    assert source_tensor(values["z"]) is values["t"]
    assert source_tensor(values["y"]) is values["y"]  # two grids meet: one of its own
    assert observed_tensors(model) == ("x", "t", "y")


def test_a_cubic_resize_overshoots_and_has_a_range_of_its_own():
    model = graph('t = Tanh(x)  y = Resize<mode="cubic">(t, , twice)')
    assert observed_tensors(model) == ("x", "t", "y")


def test_what_a_clamp_hides_is_not_observed_unless_somebody_else_reads_it():
    assert observed_tensors(graph("c = Conv(x, w)  y = Clip(c, , six)")) == ("x", "y")
    assert observed_tensors(graph("c = Conv(x, w)  y = Relu(c)", y="c y")) == ("x", "c", "y")


def test_the_answers_are_what_the_outputs_are_pieced_together_from():
    model = graph(
        """a = Tanh(x)  b = Exp(a)  c = Neg(a)  u = Transpose(c)
        v = Transpose(u)  d = Concat<axis=1>(b, v)  y = Reshape(d, s)"""
    )
    assert output_tensors(model) == {"b", "c", "d"}


@pytest.mark.parametrize("method", ["kl", "max_percentile"])
def test_nothing_is_taken_off_an_answer(method):
    model = graph("a = Mul(x, x)  y = Mul(a, a)")
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.normal(size=(1, 2, 4, 4)).astype(np.float32)} for _ in range(50)]
    statistics = observe(model, feeds)
    found = ranges(model, statistics, Calibration(method, percentile=0.99))
    assert list(found) == ["x", "a", "y"]
    for name, measured in statistics.tensors.items():
        whole = found[name] == (measured.low, measured.high)
        assert whole == (name == "y")
        assert measured.low <= found[name].low <= found[name].high <= measured.high


def test_which_inputs_are_images_is_noted_in_the_graph():
    model = graph("y = Neg(x)")
    assert images(model) == frozenset()
    mark_images(model, ["x"])
    assert images(model.copy()) == {"x"}
