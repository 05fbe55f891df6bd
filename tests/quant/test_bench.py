"""The bench: recipes are judged by samples that nothing follows, each graph once."""

import numpy as np
import pytest

from pipeline.custom.operators import NO_OPERATORS
from pipeline.data.samples import Samples
from pipeline.graph import parse_text
from pipeline.kernels.measure import cosine
from pipeline.project.sections import Calibration
from pipeline.quant.qdq.insert import DEFAULT
from pipeline.quant.search.bench import SHOWN, Bench, held_out
from pipeline.quant.search.methods import plain
from pipeline.targets.reader import read_target

GRAPH = parse_text("a (float[1,4] x) => (float[1,4] y) { y = Relu(x) }").with_shapes()
NAMES = tuple(map(str, range(16)))


def bench(read, names=NAMES, graph=GRAPH):
    samples = Samples(names, lambda index: {"x": np.array([read(index)], np.float32)})
    return Bench(graph, samples, NO_OPERATORS, read_target("ara240"), DEFAULT)


def test_what_is_tried_follows_no_sample_that_judges_it():
    outlier = bench(lambda index: [index, 1, 2, 1000.0 if index in held_out(16) else 3])
    _, statistics, _ = outlier.ground(())
    assert statistics.tensors["x"].high == 14.0
    assert sorted({*outlier.shown.names, *(NAMES[n] for n in held_out(16))}) == sorted(NAMES)


def test_of_many_samples_few_are_shown():
    assert len(bench(lambda index: [0, 1, 2, 3], NAMES * 100).shown) <= SHOWN


def test_a_graph_that_was_tried_is_not_run_again():
    read = []
    counted = bench(lambda index: read.append(index) or [index, 1, 2, 3])
    graph, statistics, _ = counted.ground(())
    recipe = plain(graph, statistics, Calibration("max"), False)
    figure = counted.figure(recipe)
    read.clear()
    assert counted.figure(recipe) == figure
    assert not read


def test_a_distribution_is_judged_before_its_softmax_and_told_behind_it():
    graph = parse_text("""a (float[1,4] x) => (float[1,4] y, float[1,4] z)
        { r = Relu(x)  y = Softmax(r)  z = Relu(r) }""").with_shapes()
    tried = bench(lambda index: [index, 5, 1, 9 - index / 2], graph=graph)
    recipe = plain(graph, tried.ground(()).statistics, Calibration("max"), False)
    meant, made = tried.meant, tried.answers(tried.model(recipe))
    by_output = [
        cosine(*(np.stack([sample[index] for sample in some]) for some in (meant, made)))
        for index in range(2)
    ]
    figure = tried.figure(recipe)
    assert figure.distributions.all == pytest.approx(by_output[0], abs=1e-6) != 1.0
    assert figure.close.all == pytest.approx(by_output[1], abs=1e-6)


def test_where_no_softmax_answers_no_distribution_is_told():
    tried = bench(lambda index: [index, 1, 2, 3])
    recipe = plain(GRAPH, tried.ground(()).statistics, Calibration("max"), False)
    assert tried.figure(recipe).distributions.all == 1.0 > tried.figure(recipe).close.all
