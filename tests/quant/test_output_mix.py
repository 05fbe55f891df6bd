"""output_mix: the method of each tensor by what the outputs lose."""

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.methods import ranges_by_choice, ranges_by_method
from npumake.quant.search.output_mix import output_mix
from npumake.quant.search.recipe import Recipe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

CHIPS = [read_target(name) for name in ("ara240", "rdk-x5")]
MIX, MAX, MSE = (Calibration(method) for method in ("output_mix", "max", "mse"))
# Of the few large values of `a` the whole output is made.
SHOWN = upgraded(
    parse_text(
        """m (float[1,256] x) => (float[1,256] y) <float[1] six = {6}>
{ a = Mul(x, x)  s = Sub(a, six)  y = Relu(s) }"""
    )
).with_shapes()
# All large values of `a` are one output.
HIDDEN = upgraded(
    parse_text(
        """m (float[1,256] x) => (float[1,256] y) <float[1] twice = {2}>
{ a = Mul(x, x)  s = Mul(a, twice)  y = Tanh(s) }"""
    )
).with_shapes()
RNG = np.random.default_rng(0)
FEEDS = [{"x": RNG.standard_t(4, (1, 256)).astype(np.float32)} for _ in range(32)]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)


def mixed(graph, chip):
    bench = Evaluator(graph, FED, NO_OPERATORS, chip, Quantization(), MIX)
    return output_mix(bench.rescaled_model(()), bench, chip.activations.symmetric)


@pytest.mark.parametrize("chip", CHIPS)
def test_values_that_make_the_output_are_not_cut_off(chip):
    assert not {"a", "y"} & mixed(SHOWN, chip).methods.keys()


@pytest.mark.parametrize("chip", CHIPS)
def test_values_that_the_output_does_not_show_are(chip):
    mix, widest = mixed(HIDDEN, chip), ranges_by_method(HIDDEN, observe(HIDDEN, FED), MAX, False)
    assert "a" in mix.methods
    assert mix.ranges["a"].high < widest.ranges["a"].high


@pytest.mark.parametrize("chip", CHIPS)
def test_every_range_is_that_of_its_method(chip):
    mix = mixed(HIDDEN, chip)
    bench = Evaluator(HIDDEN, FED, NO_OPERATORS, chip, Quantization(), MIX)
    base, symmetric = bench.rescaled_model(()), chip.activations.symmetric
    again = ranges_by_choice(base.graph, base.statistics, MIX, symmetric, mix.methods)
    assert again.ranges == mix.ranges
    plain = ranges_by_choice(base.graph, base.statistics, MIX, symmetric, {})
    assert plain.ranges == ranges_by_method(base.graph, base.statistics, MAX, symmetric).ranges


@pytest.mark.parametrize("graph", [SHOWN, HIDDEN])
@pytest.mark.parametrize("chip", CHIPS)
def test_a_project_may_ask_for_it(graph, chip, tmp_path):
    found = recipe(graph, observe(graph, FED), FED, MIX, chip)
    assert found.method == "output_mix"
    found.save(tmp_path / "recipe.json")
    assert Recipe.load(tmp_path / "recipe.json") == found
    assert quantized(calibrated(graph, found, FED, chip), chip).nodes()


def test_the_best_recipe_tries_it_with_every_switch():
    found = recipe(HIDDEN, observe(HIDDEN, FED), FED, Calibration(recipe="best"), CHIPS[0])
    assert any(trial.what.startswith("output_mix") for trial in found.trials)
