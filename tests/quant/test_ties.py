"""Ties: what stands first is not left to chance where int16 can tell it."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.argmax_ties import TOP_K, argmax_ties
from npumake.quant.search.fidelity import FloatReference
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from quant.test_closeness import STANDS, of_all

CLASSES, SAMPLES = 400, 80
MODEL = f"""a (float[1,8] x) => (float[1,{CLASSES}] y) <float[8,{CLASSES}] w>
{{ z = Gemm(x, w)  y = Softmax(z) }}"""


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    graph = parse_text(MODEL.replace(" w>", f" w = {{{numbers(rng)}}}>"))
    feeds = [{"x": rng.normal(size=(1, 8)).astype(np.float32)} for _ in range(2 * SAMPLES)]
    return upgraded(graph).with_shapes(), feeds


def numbers(rng):
    return ",".join(f"{value:.4f}" for value in rng.normal(size=8 * CLASSES))


BEST, DEFAULT = Calibration(recipe="best"), Calibration("default")


def searched(classifier, target, asked=Quantization(), calibration=BEST):  # noqa: B008
    graph, feeds = classifier
    fed = Samples(tuple(map(str, range(SAMPLES))), feeds.__getitem__)
    measured = observe(graph, fed)
    found = recipe(graph, measured, fed, calibration, target, quantization=asked)
    made = quantized(calibrated(graph, found, fed, target, quantization=asked), target)
    return found, answers(made, feeds[SAMPLES:])


def answers(graph, feeds):
    session = OrtSession(graph.to_bytes())
    return [session.run(None, feed)[0] for feed in feeds]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["ara240", "vs680"])
@pytest.mark.parametrize("search", [BEST, DEFAULT], ids=["best", "default"])
def test_a_search_parts_what_8_bits_leave_to_chance(classifier, chip, search):
    """Of samples that it has not seen, too."""
    target, (graph, feeds) = read_target(chip), classifier
    meant = answers(graph, feeds[SAMPLES:])
    best, made = searched(classifier, target, calibration=search)
    narrow, coarse = searched(classifier, target, Quantization(widen_answers=False), search)
    assert "widen_answers" in best.switches
    assert "widen_answers" not in narrow.switches
    assert argmax_ties(meant, coarse) > 20
    assert argmax_ties(meant, made) <= 2
    assert alike(meant, made) > alike(meant, coarse)
    told = [line for line in narrow.lines if " ties" in line]
    assert len(told) == len(narrow.trials)


def alike(meant, made):
    return np.mean([a.argmax() == b.argmax() for a, b in zip(meant, made, strict=True)])


def test_a_tie_is_of_neighbors_among_the_first_that_the_float_model_tells_apart():
    real = [np.array([0.1, 0.5, 0.4, 0.3, 0.3, 0.2, 0.15])]
    assert argmax_ties(real, real) == 0
    assert argmax_ties(real, [np.array([0.1, 0.5, 0.5, 0.3, 0.3, 0.2, 0.15])]) == 1
    assert argmax_ties(real, [np.array([0.1, 0.4, 0.5, 0.3, 0.4, 0.2, 0.15])]) == 0
    assert argmax_ties(real, [np.zeros(7)]) == TOP_K - 2
    assert argmax_ties(real, [np.array([0.2, 0.5, 0.4, 0.3, 0.3, 0.25, 0.2])]) == 0
    assert (
        argmax_ties([np.array(3.0)], [np.array(3.0)])
        == argmax_ties([np.array([])], [np.array([])])
        == 0
    )


def test_positions_of_a_picture_are_no_classes():
    rng = np.random.default_rng(0)
    vectors, maps = [rng.normal(size=(2, 1, size)) for size in (9, 900)]
    real = [[v, m.reshape(1, 4, 15, 15)] for v, m in zip(vectors, maps, strict=True)]
    made = [[np.zeros_like(each) for each in sample] for sample in real]
    assert FloatReference(real).figure(made).ties == 2 * (TOP_K - 1)


@pytest.mark.parametrize(
    ("before", "after", "close", "of_distributions", "unties"),
    [
        (8, 4, 0.9, 0.98, True),
        (8, 5, 0.9, 0.98, False),
        (8, 0, 0.896, 0.98, True),
        (8, 0, 0.89, 0.98, False),
        (8, 0, 0.9, 0.95, False),
        (0, 0, 0.9, 0.98, False),
    ],
    ids=["half", "less than half", "as close", "further away", "spoilt", "nothing tied"],
)
def test_half_of_the_ties_have_to_go_and_nothing_else(
    before, after, close, of_distributions, unties
):
    stands = replace(STANDS, distributions=of_all(0.98), ties=before)
    tried = replace(stands, close=of_all(close), distributions=of_all(of_distributions), ties=after)
    assert tried.unties(stands, 0.05) == unties


@pytest.mark.slow
def test_sums_leave_nothing_to_chance(classifier):
    """On rdk-x5 the CPU has the Softmax, and the Gemm before it hands out what it accumulated."""
    graph, feeds = classifier
    meant = answers(graph, feeds[SAMPLES:])
    found, made = searched(classifier, read_target("rdk-x5"))
    assert "widen_answers" not in found.switches
    assert argmax_ties(meant, made) == 0
    codes = Quantization(outputs="int8")
    assert "widen_answers" not in searched(classifier, read_target("rdk-x5"), codes)[0].switches
