"""The int16 budget: no recipe spends more, each switch within it, and 0 means 8 bits alone."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.graph import parse_text
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.search.int16_budget import BEST_LIMIT, affordable, int16_limit
from npumake.quant.search.recipe import Recipe, RecipeTrial
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from trained import network, samples, stressed
from workspaces import few

FEEDS = samples()[:16]
FED = Samples(tuple(str(index) for index in range(len(FEEDS))), FEEDS.__getitem__)
BEST = Calibration(recipe="best")
WIDENING = ("widen", "widen_answers", "widen_sensitive")
NAMES = ("repvgg", "mobilenetv3")
TARGETS = ("ara240", "rdk-x5", "tflite", "nash-e")


@pytest.fixture(scope="module")
def models():
    graphs = {name: stressed(network(name), 1.5) for name in NAMES}
    return {name: (graph, observe(graph, FED)) for name, graph in graphs.items()}


def spent(models, name, target, calibration, asked):
    graph, statistics = models[name]
    made = recipe(graph, statistics, FED, calibration, target, quantization=asked)
    file = quantized(calibrated(graph, made, FED, target, quantization=asked), target)
    return int16_share(file), made


SPACE = [
    (name, target, most, calibration, on)
    for name in NAMES
    for target in TARGETS
    for most in (0.0, 0.02, 0.1, 0.4, 1.0)
    for calibration, on in (
        (BEST, ()),
        *((Calibration("max"), on) for n in (1, 3) for on in combinations(WIDENING, n)),
    )
]
SAMPLED = SPACE[3::31]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "most", "calibration", "on"), few(SPACE, SAMPLED.__contains__)
)
def test_no_recipe_spends_more_than_the_limit(models, name, target, most, calibration, on):
    asked = replace(Quantization(most_int16=most), **dict.fromkeys(on, True))
    share, made = spent(models, name, read_target(target), calibration, asked)
    assert share <= most
    assert all(trial.int16 <= most or "beyond" in trial.what for trial in made.trials)
    assert not any(trial.kept for trial in made.trials if "beyond" in trial.what)
    if most == 0:
        assert not made.wide
        assert not made.sensitive


@pytest.mark.parametrize("target", TARGETS)
def test_a_layer_that_makes_int16_and_reads_it_counts(target):
    """widen_answers makes the output of the last Conv int16; its input would cost half of all."""
    graph = parse_text(
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "a (float[1,2,8,8] x) => (float[] y) <float[2,2,1,1] w = {1.0,-2.0,0.5,300.0}, "
        "float[1,2,8,8] s = {" + ",".join(["0.5"] * 128) + "}> "
        "{ c = Conv(x, w)  r = Relu(c)  d = Conv(r, w)  y = Mul(d, s) }"
    )
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    feeds = [{"x": rng.normal(size=(1, 2, 8, 8)).astype(np.float32)} for rng in rngs]
    samples = Samples(tuple(map(str, range(8))), feeds.__getitem__)
    chip, most = read_target(target), 0.1
    asked = Quantization(widen_answers=True, widen_sensitive=True, most_int16=most)
    statistics, method = observe(graph, samples), Calibration("max")
    made = recipe(graph, statistics, samples, method, chip, quantization=asked)
    file = quantized(calibrated(graph, made, samples, chip, quantization=asked), chip)
    assert int16_share(file) <= most


@pytest.mark.slow
@pytest.mark.parametrize("calibration", [Calibration("default"), Calibration("max"), BEST])
def test_nothing_is_int16_at_0_and_what_no_layer_reads_above(calibration):
    graph = parse_text(
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "a (float[1,2,8,8] x) => (float[] y) <float[2,2,3,3] w = {"
        + ",".join(str(n % 7 - 3) for n in range(36))
        + "}> { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w) }"
    )
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    feeds = [{"x": rng.normal(size=(1, 2, 8, 8)).astype(np.float32)} for rng in rngs]
    samples = Samples(tuple(map(str, range(8))), feeds.__getitem__)
    chip, statistics = read_target("ara240"), observe(graph, samples)
    for most in (0.0, 0.001):
        asked = Quantization(widen_answers=True, most_int16=most)
        made = recipe(graph, statistics, samples, calibration, chip, quantization=asked)
        file = quantized(calibrated(graph, made, samples, chip, quantization=asked), chip)
        assert bool(made.wide) is (most > 0)
        assert int16_share(file) == 0


@pytest.mark.slow
def test_what_the_project_puts_in_int16_counts_and_stays(models):
    target = read_target("ara240")
    asked = Quantization({"*": "int16"}, most_int16=0.1)
    alone, _ = spent(models, "repvgg", target, Calibration("max"), asked)
    share, made = spent(models, "repvgg", target, BEST, asked)
    assert share == alone > 0.1
    assert all(trial.int16 == share for trial in made.trials)


@pytest.mark.parametrize(
    ("most", "calibration", "limit"),
    [
        (None, BEST, BEST_LIMIT),
        (0.3, BEST, 0.3),
        (None, Calibration("default"), None),
        (0.0, Calibration("max"), 0.0),
    ],
)
def test_the_limit_is_the_project_s_or_that_of_a_search(most, calibration, limit):
    assert int16_limit(Quantization(most_int16=most), calibration) == limit


def test_names_are_taken_in_order_as_long_as_they_fit():
    costs = {"a": 0.05, "b": 0.5, "c": 0.05, "free": 0.0}

    def share_of(names):
        return sum(costs[name] for name in names)

    assert affordable(tuple(costs), share_of, 0.1) == ("a", "c", "free")
    assert affordable(tuple(costs), share_of, None) == tuple(costs)
    assert affordable(tuple(costs), share_of, 0.0) == ()
    assert affordable((), share_of, 0.1) == ()


def test_a_project_beyond_the_limit_leaves_room_for_what_costs_nothing():
    costs = {"a": 0.05, "free": 0.0}

    def share_of(names):
        return 0.3 + sum(costs[name] for name in names)

    assert affordable(tuple(costs), share_of, 0.1) == ("free",)


def _tried(share, closeness):
    return RecipeTrial(f"{share} {closeness}", closeness, closeness, False, 0, share)


def test_the_front_has_the_closest_trial_of_each_share_and_no_trial_that_another_beats():
    pairs = [(0.0, 0.8), (0.0, 0.9), (0.05, 0.85), (0.1, 0.95), (1.0, 0.95), (0.3, 0.97)]
    made = Recipe("max", False, {}, trials=tuple(_tried(*pair) for pair in pairs))
    assert [(t.int16, t.closeness) for t in made.front] == [(0.0, 0.9), (0.1, 0.95), (0.3, 0.97)]
    assert made.lines[-1].split()[:2] == ["30.0%", "0.970000"]


def test_a_search_without_int16_has_no_front():
    made = Recipe("max", False, {}, trials=(_tried(0.0, 0.8), _tried(0.0, 0.9)))
    assert made.front == ()
    assert not any("int16" in line for line in made.lines)


@pytest.mark.slow
def test_a_search_shows_what_more_int16_would_bring(models):
    _, made = spent(models, "repvgg", read_target("ara240"), BEST, Quantization(most_int16=0.05))
    beyond = [trial for trial in made.trials if "beyond" in trial.what]
    kept = [trial for trial in made.trials if trial.kept]
    assert beyond
    assert max(trial.int16 for trial in beyond) > 0.05 >= max(trial.int16 for trial in kept)
    assert max(made.front, key=lambda trial: trial.int16) in beyond


@pytest.mark.parametrize("seed", range(8))
def test_names_are_taken_as_one_after_another(seed):
    """Costs overlap: one product may read several of the names."""
    random = np.random.default_rng(seed)
    names = tuple(str(number) for number in range(60))
    products = random.random(40) ** 3 / 20
    read = {name: set(random.choice(40, random.integers(0, 4)).tolist()) for name in names}

    def share_of(chosen):
        return float(sum(products[at] for at in set().union(*(read[name] for name in chosen))))

    expected = []
    for name in names:
        if share_of([*expected, name]) <= 0.1:
            expected.append(name)
    assert 0 < len(expected) < len(names)
    assert affordable(names, share_of, 0.1) == tuple(expected)
