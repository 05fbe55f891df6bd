"""The bench: recipes are judged by samples that nothing follows, each graph once."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.engine.float_session import float_session
from npumake.graph import parse_text
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.fidelity import FloatReference
from npumake.quant.search.holdout import MAX_CALIBRATION_SAMPLES, holdout_folds, holdout_samples
from npumake.quant.search.methods import ranges_by_method
from npumake.targets.reader import read_target

GRAPH = parse_text("a (float[1,4] x) => (float[1,4] y) { y = Relu(x) }").with_shapes()
NAMES = tuple(map(str, range(16)))


def bench(read, names=NAMES, graph=GRAPH):
    samples = Samples(names, lambda index: {"x": np.array([read(index)], np.float32)})
    return Evaluator(graph, samples, NO_OPERATORS, read_target("ara240"), DEFAULT)


def test_what_is_tried_follows_no_sample_that_judges_it():
    outlier = bench(lambda index: [index, 1, 2, 1000.0 if index in holdout_samples(16) else 3])
    statistics = outlier.rescaled_model(()).statistics
    assert statistics.tensors["x"].high == 14.0
    assert sorted(
        {*outlier.calibration_samples.names, *(NAMES[n] for n in holdout_samples(16))}
    ) == sorted(NAMES)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 31, 63, 64, 100, 1000])
def test_halves_take_turns_where_samples_are_few_but_do_not_all_judge_already(count):
    first, *others = holdout_folds(count)
    assert first.holdout == tuple(holdout_samples(count))
    assert len(others) == (8 <= count < 64)
    for shown, judges in (first, *others):
        assert count < 8 or not {*shown} & {*judges}
        assert {*shown, *judges} <= {*range(count)}
    if others:
        assert sorted(judge for fold in (first, *others) for judge in fold.holdout) == [
            *range(count)
        ]


@pytest.mark.parametrize("switches", [(), ("migrate", "round_weights", "bias_correction")])
def test_a_figure_over_two_turns_is_that_of_what_either_half_makes(switches):
    graph = parse_text("""a (float[1,2,4,4] x) => (float[1,2,4,4] y)
        <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}, float[2,2,1,1] v = {0.3,-0.2,0.1,0.7}>
        { c = Conv(x, w)  r = Relu(c)  y = Conv(r, v) }""").with_shapes()
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(16, 2, 4, 4)) * np.array([1.0, 9.0]).reshape(2, 1, 1)
    tried = bench(noise.__getitem__, graph=graph)

    def made_of(fold):
        stood = tried.rescaled_model(switches, fold)
        found = ranges_by_method(stood.graph, stood.statistics, Calibration("max"), False)
        return replace(found, switches=switches, factors=stood.factors)

    def answers(model, numbers):
        session = float_session(model)
        return [session.run(None, tried.samples.read(number)) for number in numbers]

    first, second = tried.folds
    models = [tried.model(made_of(fold), fold) for fold in (first, second)]
    assert models[0].to_bytes() != models[1].to_bytes()
    alone = [
        FloatReference(answers(graph, fold.holdout)).figure(answers(model, fold.holdout))
        for fold, model in zip(tried.folds, models, strict=True)
    ]
    order = [*first.holdout, *second.holdout]
    both = [*answers(models[0], first.holdout), *answers(models[1], second.holdout)]
    figure = tried.figure(made_of(first))
    assert figure == FloatReference(answers(graph, order)).figure(both)
    assert figure.close.all not in {one.close.all for one in alone}


def test_of_many_samples_few_are_shown():
    assert (
        len(bench(lambda index: [0, 1, 2, 3], NAMES * 100).calibration_samples)
        <= MAX_CALIBRATION_SAMPLES
    )


def test_a_graph_that_was_tried_is_not_run_again():
    read = []
    counted = bench(lambda index: read.append(index) or [index, 1, 2, 3])
    stood = counted.rescaled_model(())
    graph, statistics = stood.graph, stood.statistics
    recipe = ranges_by_method(graph, statistics, Calibration("max"), False)
    figure = counted.figure(recipe)
    read.clear()
    assert counted.figure(recipe) == figure
    assert not read


def test_a_distribution_is_judged_before_its_softmax_and_told_behind_it():
    graph = parse_text("""a (float[1,4] x) => (float[1,4] y, float[1,4] z)
        { r = Relu(x)  y = Softmax(r)  z = Relu(r) }""").with_shapes()
    names = tuple(map(str, range(64)))
    tried = bench(lambda index: [index / 4, 5, 1, 9 - index / 8], names, graph)
    recipe = ranges_by_method(graph, tried.rescaled_model(()).statistics, Calibration("max"), False)
    meant, made = tried.float_outputs, tried.outputs(tried.model(recipe))
    assert len(meant) == len(holdout_samples(64))
    by_output = [
        cosine(*(np.stack([sample[index] for sample in some]) for some in (meant, made)))
        for index in range(2)
    ]
    figure = tried.figure(recipe)
    assert figure.distributions.all == pytest.approx(by_output[0], abs=1e-6) != 1.0
    assert figure.close.all == pytest.approx(by_output[1], abs=1e-6)


def test_where_no_softmax_answers_no_distribution_is_told():
    tried = bench(lambda index: [index, 1, 2, 3])
    recipe = ranges_by_method(GRAPH, tried.rescaled_model(()).statistics, Calibration("max"), False)
    assert tried.figure(recipe).distributions.all == 1.0 > tried.figure(recipe).close.all
