"""Sensitive tensors: those that make most of the noise become int16, within a limit of cost."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.distribution import distributing
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.methods import ranges_by_method
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.sensitive_tensors import find_sensitive_tensors
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NPU, X5, X3 = (read_target(name) for name in ("ara240", "rdk-x5", "rdk-x3"))
MAX = Calibration("max")
BEST = Calibration(recipe="best")
ON, OFF = Quantization(widen_sensitive=True), Quantization(widen_sensitive=False)
# What is told is small, but `c` has it on a grid that reaches to 150 and beyond; what computes with
# `c` costs far less than `e`, `f` and `y`.
MODEL = """a (float[1,1,8,8] x) => (float[1,4,8,8] y)
<float[2,1,1,1] w = {1, 1}, float[2] b = {0, 150}, float[1,2,1,1] k = {0, 1},
 float[1] minus = {-150}>
{ c = Conv(x, w, b)  d = Conv(c, k, minus)  s = Tanh(d)  e = Conv(s, many)  f = Conv(e, more)
  y = Conv(f, more) }"""
RNG = np.random.default_rng(0)


def graph():
    text = MODEL.replace("<float[2,1", f"<{_weights('many', 1)}, {_weights('more', 4)}, float[2,1")
    return upgraded(parse_text(text)).with_shapes()


def _weights(name, channels):
    """Orthogonal rows: no channel is small, and none of the noise is made larger."""
    rows = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    numbers = rows[:, :channels].ravel()
    return f"float[4,{channels},1,1] {name} = {{{', '.join(map(str, numbers))}}}"


FEEDS = [{"x": RNG.normal(size=(1, 1, 8, 8)).astype(np.float32)} for _ in range(8)]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)


def found(target, asked, calibration=MAX):
    model = graph()
    return recipe(model, observe(model, FED), FED, calibration, target, quantization=asked)


def off(target, asked):
    """The mean distance of the integers' answers to the float model's."""
    model, made = graph(), found(target, asked)
    q = quantized(calibrated(model, made, FED, target, quantization=asked), target)
    pairs = zip(_answers(model), _answers(q), strict=True)
    return float(np.mean([np.abs(a - b) for a, b in pairs]))


def _answers(model):
    return _run(OrtSession(model.to_bytes()))


def _run(session):
    return [session.run(None, feed)[0] for feed in FEEDS]


@pytest.mark.parametrize("target", [NPU, X5])
def test_the_exact_integers_answer_as_onnxruntime_does_but_for_a_step(target):
    made = found(target, ON)
    q = quantized(calibrated(graph(), made, FED, target, quantization=ON), target)
    exact = _run(ReferenceSession(lowered(q, target.rounding, target.runnable)))
    low, high = made.ranges["y"]
    apart = max(np.abs(a - b).max() for a, b in zip(exact, _answers(q), strict=True))
    assert apart <= 1.01 * 2 * max(-low, high) / 255


@pytest.mark.parametrize("target", [NPU, X5])
def test_the_tensor_that_makes_the_noise_is_found_and_the_answers_are_the_better_for_it(target):
    assert found(target, ON).sensitive == ("c",)
    assert off(target, ON) < off(target, OFF) / 3


@pytest.mark.slow
def test_nothing_is_int16_unless_asked_for():
    assert found(NPU, Quantization()).sensitive == ()
    assert found(NPU, Quantization(), Calibration("default")).sensitive == ()


@pytest.mark.slow
def test_a_search_says_what_it_brings():
    made = found(NPU, Quantization(), BEST)
    assert made.sensitive == ("c",)
    tried = [line for line in made.lines if "widen_sensitive" in line]
    assert any("(int16: 1 tensors)" in line for line in tried)
    assert not found(NPU, OFF, BEST).sensitive


@pytest.mark.parametrize("asked", [{"*": "int8"}, {"c": "int8"}, {"d": "int8"}])
def test_what_the_project_says_is_stronger(asked):
    assert "c" not in found(NPU, Quantization(asked, widen_sensitive=True)).sensitive


def test_a_chip_without_int16_gets_no_proposal():
    assert found(X3, ON).sensitive == ()


# The tensor c costs three quarters of the model where a layer of four weights reads it.
COSTLY = """a (float[1,1,8,8] x) => (float[1,1,7,7] y)
<float[1,1,1,1] w = {2}, float[1,1,2,2] v = {2, 1, -1, 2}, float[1] b = {150}>
{ c = Conv(x, w, b)  y = Conv(c, v) }"""


@pytest.mark.parametrize(("most", "chosen"), [(None, ()), (0.7, ()), (0.8, ("c",)), (1.0, ("c",))])
def test_what_costs_more_than_the_limit_stays_at_8_bits(most, chosen):
    model = upgraded(parse_text(COSTLY)).with_shapes()
    asked = replace(ON, most_int16=most)
    made = recipe(model, observe(model, FED), FED, MAX, NPU, quantization=asked)
    assert made.sensitive == chosen


def test_what_costs_half_of_the_model_may_be_int16():
    text = "a (float[1,1,8,8] x) => (float[1,1,8,8] y) <float[1,1,1,1] w = {2}>"
    model = upgraded(parse_text(text + "{ c = Conv(x, w)  y = Conv(c, w) }")).with_shapes()
    made = recipe(model, observe(model, FED), FED, MAX, NPU, quantization=ON)
    assert made.sensitive == ("c",)


def test_what_is_known_of_a_tensor_on_its_grid_is_not_probed_again():
    bench = Evaluator(graph(), FED, NO_OPERATORS, NPU, Quantization(), MAX)
    stood = bench.rescaled_model(())
    made = ranges_by_method(stood.graph, stood.statistics, MAX, False)
    assert find_sensitive_tensors(made, stood, bench) == ("c",)
    probed = dict(stood.noise)
    with distributing(Refusing()):
        assert find_sensitive_tensors(made, stood, bench) == ("c",)
    wider = replace(made, ranges={**made.ranges, "c": (-300.0, 300.0)})
    assert find_sensitive_tensors(wider, stood, bench) == ("c",)
    assert len(stood.noise) == len(probed) + 1


class Refusing:
    width = 1

    def map(self, function, items, shared):
        raise AssertionError("a tensor was probed")


def test_a_recipe_with_sensitive_tensors_is_read_back_as_written(tmp_path):
    made = found(NPU, ON)
    made.save(tmp_path / "recipe.json")
    assert Recipe.load(tmp_path / "recipe.json") == made
