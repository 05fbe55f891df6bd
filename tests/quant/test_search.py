"""Methods that follow the samples, and those that are looked for."""

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.errors import CacheError, ProjectError
from npumake.graph import may_have_int16, parse_text, upgraded
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.methods import candidates, ranges_by_tensor, with_recipe_method
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import best_method
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

GRAPH = parse_text(
    """a (float[1,2,8,8] x) => (float[] y) <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
    { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w) }"""
)
# All that it reads behind x is zero or above: half of a symmetric grid is never used.
RELUS = parse_text(
    """a (float[1,2,8,8] x) => (float[] y) <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
    { c = Conv(x, w)  r = Relu(c)  d = Conv(r, w)  s = Relu(d)  e = Conv(s, w)  y = Relu(e) }"""
)
CHIP = read_target("ara240")


def fed(scale=1.0):
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.normal(size=(1, 2, 8, 8)).astype(np.float32)} for _ in range(16)]
    feeds[5]["x"][0, 0, 0, 0] = 40 * scale
    return Samples(tuple(map(str, range(16))), lambda index: feeds[index])


def test_a_moving_average_starts_with_the_first_sample_and_follows_the_others():
    samples = fed()
    statistics = observe(GRAPH, samples)
    still = ranges(GRAPH, statistics, Calibration("moving_average", momentum=1.0))["x"]
    assert still == (samples.read(0)["x"].min(), samples.read(0)["x"].max())
    last = ranges(GRAPH, statistics, Calibration("moving_average", momentum=0.0))["x"]
    assert last == (samples.read(15)["x"].min(), samples.read(15)["x"].max())
    high = samples.read(0)["x"].max()
    for feed in list(samples)[1:]:
        high = 0.9 * high + 0.1 * float(feed["x"].max())
    found = ranges(GRAPH, statistics, Calibration("moving_average"))["x"]
    assert found.high == pytest.approx(high, rel=1e-6)


def test_default_keeps_the_closest_and_says_what_lost(tmp_path):
    samples = fed()
    statistics = observe(GRAPH, samples)
    found = recipe(GRAPH, statistics, samples, Calibration("default"), CHIP)
    methods = [trial for trial in found.trials if " + " not in trial.what]
    assert sorted(trial.what for trial in methods) == [
        *("kl", "max", "max_percentile 0.99995", "max_percentile 0.99999", "mse"),
    ]
    assert any("symmetric" in trial.what.split(" + ") for trial in found.trials)
    (kept,) = [trial for trial in methods if trial.kept]
    assert kept.closeness == max(trial.closeness for trial in methods)
    assert f"Select {found.named} method." in found.lines
    assert sum("closeness" in line for line in found.lines) == len(found.trials)
    found.save(tmp_path / "r.json")
    assert Recipe.load(tmp_path / "r.json") == found


@pytest.mark.slow
@pytest.mark.parametrize("search", [Calibration("default"), Calibration(recipe="best")])
def test_a_scheme_is_judged_before_biases_are_corrected(search):
    samples = fed()
    found = recipe(GRAPH, observe(GRAPH, samples), samples, search, CHIP)
    tried = [trial.what.split(" + ") for trial in found.trials]
    schemes = [n for n, what in enumerate(tried) if "symmetric" in what]
    corrected = [n for n, what in enumerate(tried) if "bias_correction" in what]
    assert schemes
    assert corrected
    assert max(schemes) < min(corrected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "is_tried"), [(Calibration("default"), False), (Calibration(recipe="best"), True)]
)
def test_outputs_whose_only_gain_is_fewer_ties_need_ties(search, is_tried):
    graph, samples = upgraded(GRAPH).with_shapes(), fed()
    assert may_have_int16(graph)
    found = recipe(graph, observe(graph, samples), samples, search, CHIP)
    assert not any(trial.ties for trial in found.trials)
    assert any("widen_answers" in trial.what for trial in found.trials) == is_tried


@pytest.mark.slow
@pytest.mark.parametrize("search", [Calibration("default"), Calibration(recipe="best")])
def test_a_model_that_cannot_have_int16_is_searched_in_8_bits(search):
    """An opset that int16 is not in, and from which later ones differ."""
    samples = fed()
    found = recipe(GRAPH, observe(GRAPH, samples), samples, search, CHIP)
    assert len(found.trials) > 3
    assert found.wide == found.sensitive == ()


def test_a_percentile_that_is_said_is_tried_too_and_its_ranges_are_kept():
    samples = fed()
    statistics = observe(GRAPH, samples)
    said = Calibration("default", percentile=0.9)
    tried = {one.named: one for one in candidates(GRAPH, statistics, said, False)}
    assert {f"max_percentile {share}" for share in (0.9, 0.99995, 0.99999)} <= tried.keys()
    for share in (0.9, 0.99999):
        one = tried[f"max_percentile {share}"]
        alone = Calibration("max_percentile", share)
        assert with_recipe_method(said, one) == alone
        assert one.ranges == ranges(GRAPH, statistics, alone)
    assert with_recipe_method(said, tried["kl"]) == Calibration("kl", 0.9)


def test_the_first_of_equals_is_kept():
    samples = fed()
    one = next(candidates(GRAPH, observe(GRAPH, samples), Calibration("default"), False))
    twice = best_method([one, one], Evaluator(GRAPH, samples, NO_OPERATORS, CHIP, DEFAULT))
    assert [trial.kept for trial in twice.recipe.trials] == [True, False]


def test_mix_takes_each_tensor_s_range_from_the_method_it_names():
    statistics = observe(GRAPH, fed())
    found = ranges_by_tensor(GRAPH, statistics, Calibration("mix"), False)
    assert found.methods.keys() == found.ranges.keys() == statistics.tensors.keys()
    for name, method in found.methods.items():
        assert found.ranges[name] == ranges(GRAPH, statistics, Calibration(method))[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "symmetric"),
    [
        (Calibration("max"), True),
        (Calibration("max", symmetric=False), False),
        (Calibration("default"), False),
        (Calibration("default", symmetric=True), True),
    ],
    ids=["as the chip has it", "as asked", "found", "found as asked"],
)
def test_zero_points_where_a_chip_may_have_them_are_asked_for_or_found(asked, symmetric):
    samples, chip = fed(), read_target("rdk-x5")
    found = recipe(RELUS, observe(RELUS, samples), samples, asked, chip)
    assert found.symmetric == symmetric
    tried = {"asymmetric" in trial.what.split(" + ") for trial in found.trials}
    assert (True in tried) == (asked == Calibration("default"))


def test_a_chip_without_zero_points_is_not_given_any():
    samples, chip, asked = fed(), read_target("rdk-x3"), Calibration(symmetric=False)
    with pytest.raises(ProjectError, match="its grids are symmetric"):
        recipe(GRAPH, observe(GRAPH, samples), samples, asked, chip)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"method": 1}', b"\xff"])
def test_a_damaged_recipe_is_a_cache_error(data, tmp_path):
    (tmp_path / "r.json").write_bytes(data)
    with pytest.raises(CacheError, match="not a recipe"):
        Recipe.load(tmp_path / "r.json")
