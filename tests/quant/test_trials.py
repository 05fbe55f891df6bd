"""What is kept because it helps, on trained networks that lose much without it."""

from itertools import pairwise

import pytest

from npumake import digest
from npumake.data.samples import Samples
from npumake.distribution import ThreadDistributor, distributing
from npumake.errors import ProjectError
from npumake.graph import parse_text
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.evaluator import before_softmax
from npumake.quant.search.holdout import holdout_samples
from npumake.quant.search.model_graphs import model_graphs
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import MAX_FINALISTS, MIN_GAIN
from npumake.stages.calibrated import calibrated
from npumake.stages.comparison import comparison
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from quant.fidelity_scores import score_of_losses
from trained import PER_CHANNEL, PER_TENSOR, closeness, network, samples, stressed, top1

FEEDS = samples()
FED = Samples(tuple(str(index) for index in range(len(FEEDS))), FEEDS.__getitem__)


def refuse(index):
    raise AssertionError("a sample was read")


UNREAD = Samples(FED.names, refuse)


@pytest.fixture(scope="module")
def hard():
    graph = stressed(network("repvgg"), 1.5)
    return graph, observe(graph, FED)


@pytest.fixture(scope="module")
def found(hard):
    graph, measured = hard
    return recipe(graph, measured, FED, Calibration(recipe="best"), PER_TENSOR)


def test_the_best_recipe_brings_a_collapsed_network_back_and_says_how(hard, found):
    graph, measured = hard
    plain = recipe(graph, measured, UNREAD, Calibration("max"), PER_TENSOR)
    assert top1(calibrated(graph, plain, UNREAD, PER_TENSOR)) < 20
    assert top1(calibrated(graph, found, FED, PER_TENSOR)) > 98.5
    assert "equalize" in found.switches
    assert f"Select {found.named} method." in found.lines
    assert any("+ equalize" in line for line in found.lines)


def test_a_switch_is_kept_only_where_it_gives_back_enough_of_what_is_lost(found):
    kept = [trial for trial in found.trials if trial.kept]
    assert len(kept) > 1
    for before, after in pairwise(kept):
        if "bias_correction" in after.what and "bias_correction" not in before.what:
            continue  # trusted
        enough = 0.0 if "round_weights" in after.what else MIN_GAIN
        widened = "widen_answers" in after.what and "widen_answers" not in before.what
        if widened and 2 * after.ties <= before.ties != 0:
            enough = -MIN_GAIN
        assert 1 - after.closeness < (1 - enough) * (1 - before.closeness)


@pytest.mark.parametrize(
    ("losses", "is_kept"),
    [
        ((0.07, 0.08, 0.07, 0.08), True),
        ((0.098, 0.098, 0.098, 0.098), True),  # less than MIN_GAIN, but in every sample
        ((0.01, 0.12, 0.12, 0.12), False),  # one sample gains, three lose
        ((0.1, 0.1, 0.1, 0.1), False),
        ((0.2, 0.2, 0.2, 0.2), False),
    ],
)
def test_weights_are_rounded_adaptively_where_that_gains_more_than_its_error(losses, is_kept):
    assert score_of_losses(*losses).gains(score_of_losses(0.1, 0.1, 0.1, 0.1)) is is_kept


def test_the_methods_that_look_best_are_tried_with_their_biases_corrected(found):
    tried = [t.what for t in found.trials if t.what.split(" + ")[1:] == ["bias_correction"]]
    assert 1 <= len(tried) <= MAX_FINALISTS


@pytest.mark.parametrize(
    ("body", "shape", "given"),
    [
        ("z = Relu(x)  y = Softmax(z)", "1,9", "z"),
        ("z = Relu(x)  y = Sigmoid(z)", "1,9", "y"),
        ("z = Relu(x)  y = Softmax(z)", "1,3,3", "y"),
    ],
)
def test_an_answer_that_is_one_distribution_is_judged_before_its_softmax(body, shape, given):
    graph = parse_text(f"a (float[{shape}] x) => (float[{shape}] y) {{ {body} }}").with_shapes()
    assert [str(value.name) for value in before_softmax(graph).outputs] == [given]


def test_a_recipe_read_back_is_the_one_written(found, tmp_path):
    found.save(tmp_path / "recipe.json")
    read = Recipe.load(tmp_path / "recipe.json")
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "recipe.json").read_bytes()
    assert (read.switches, read.factors, read.trials) == (
        found.switches,
        found.factors,
        found.trials,
    )


def test_a_rescaled_network_is_compared_with_itself_in_float(hard):
    graph, measured = hard
    asked = Quantization(equalize=True)
    made = recipe(graph, measured, FED, Calibration("max"), PER_TENSOR, quantization=asked)
    q = calibrated(graph, made, UNREAD, PER_TENSOR, quantization=asked)
    graphs = model_graphs(graph, made, q, quantized(q, PER_TENSOR), PER_TENSOR)
    compared = comparison(graphs, measured, made, FED, Calibration("max"), PER_TENSOR, None)
    assert min(row.cosine for row in compared.rows) > 0.99
    assert closeness(graph, quantized(q, PER_TENSOR)) > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("on", ["clip_weights", "bias_correction", "round_weights"])
def test_a_switch_that_is_on_changes_the_calibrated_graph(hard, on):
    graph, measured = hard
    asked = Quantization(**{on: "adaptive" if on == "round_weights" else True})
    made = recipe(graph, measured, UNREAD, Calibration("max"), PER_CHANNEL, quantization=asked)
    assert made.switches == (on,)
    before = recipe(graph, measured, UNREAD, Calibration("max"), PER_CHANNEL)
    graphs = [
        calibrated(graph, each, FED, PER_CHANNEL, quantization=asked) for each in (made, before)
    ]
    assert graphs[0].to_bytes() != graphs[1].to_bytes()
    assert graphs[0].to_bytes() == calibrated(graph, made, FED, PER_CHANNEL).to_bytes()


@pytest.mark.slow
def test_what_is_said_to_be_off_is_not_tried(hard):
    graph, measured = hard
    off = Quantization(bias_correction=False)
    made = recipe(graph, measured, FED, Calibration("default"), PER_CHANNEL, quantization=off)
    assert not any("bias_correction" in trial.what for trial in made.trials)


def test_no_best_recipe_for_noise(hard):
    graph, measured = hard
    noise = Samples(tuple(f"made up {name}" for name in FED.names), FED.read)
    with pytest.raises(ProjectError, match="no samples"):
        recipe(graph, measured, noise, Calibration("skip", recipe="best"), PER_CHANNEL)


@pytest.mark.parametrize(
    ("count", "numbers"),
    [(3, [0, 1, 2]), (8, [1, 3, 5, 7]), (100, [*range(2, 98, 3)]), (1000, [*range(30, 992, 31)])],
)
def test_every_second_sample_is_held_out_of_many_32_evenly_spaced(count, numbers):
    assert list(holdout_samples(count)) == numbers


@pytest.mark.slow
def test_a_search_decides_the_same_however_many_trials_run_at_a_time(hard, found):
    graph, measured = hard
    with distributing(ThreadDistributor(3)):
        again = recipe(graph, measured, FED, Calibration(recipe="best"), PER_TENSOR)
    assert digest.plain(again) == digest.plain(found)
