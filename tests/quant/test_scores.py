"""What a Sigmoid answers, or a Softmax makes, may be surer than in any sample."""

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

MODEL = """a (float[1,2,4,4] x) => (float[1,16] y)
<float[1,2,1,1] w = {1, -1}, int64[2] s = {1, 16}> { c = Conv(x, w)  r = Reshape(c, s)  BODY }"""
SCORES = "y = Sigmoid(r)"


def graph(body):
    return upgraded(parse_text(MODEL.replace("BODY", body))).with_shapes()


def samples(low, high):
    """Eight pictures; c is from `low` to `high`."""
    c = np.linspace(low, high, 8 * 16).reshape(8, 1, 1, 4, 4)
    x = np.concatenate([6 + c, np.full_like(c, 6)], 2).astype(np.float32)
    return Samples(tuple(map(str, range(8))), lambda index: {"x": x[index]})


@pytest.mark.parametrize("method", ["max", "kl", "max_percentile", "mse", "moving_average"])
@pytest.mark.parametrize("chip", ["ara240", "rdk-x5"])
def test_an_object_is_sure_though_no_sample_shows_one(chip, method):
    model, target, background = graph(SCORES), read_target(chip), samples(-6, 0.2)
    said = (background, Calibration(method), target, {})
    found = recipe(model, observe(model, background), *said)
    made = quantized(calibrated(model, found, background, target), target)
    there = np.ones((1, 2, 4, 4), np.float32) * np.array([5, 1], np.float32)[:, None, None]
    meant, given = (OrtSession(g.to_bytes()).run(None, {"x": there})[0] for g in (model, made))
    assert meant.min() > 0.98
    assert np.abs(given - meant).max() < 0.02


def found(body, low, high):
    model, shown = graph(body), samples(low, high)
    return ranges(model, observe(model, shown), Calibration("max"))


def test_what_was_seen_as_far_above_zero_as_below_stays():
    seen = found(SCORES, -2, 3)
    assert seen["c"] == pytest.approx((-2, 3), abs=1e-5)
    assert seen["y"] == pytest.approx((0.1192, 0.9526), abs=1e-4)


@pytest.mark.parametrize("body", [SCORES, f"{SCORES}  z = Softmax(r)"])
def test_a_score_of_no_object_is_no_reason_for_more_than_a_sigmoid_tells(body):
    assert 8 < found(body, -60, 0.2)["c"][1] < 9


@pytest.mark.parametrize("body", ["g = Sigmoid(r)  y = Mul(g, r)", "y = Tanh(r)"])
def test_what_is_no_score_is_known_by_the_samples(body):
    assert found(body, -6, 0.2)["c"][1] == pytest.approx(0.2, abs=1e-3)


@pytest.mark.parametrize("chip", ["ara240", "rdk-x5", "sl1640", "onnx"])
@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_a_softmax_that_is_unsure_of_every_sample_is_what_onnxruntime_makes_of_it(chip, spread):
    """Its integer kernel makes 0 of the largest where the grid ends near 1 / 16."""
    model, target = graph("p = Softmax(r)  y = Relu(p)"), read_target(chip)
    unsure = samples(-spread, spread)
    said = (unsure, Calibration("max"), target, {"npu": ["*"]} if chip == "rdk-x5" else {})
    found = recipe(model, observe(model, unsure), *said)
    made = quantized(calibrated(model, found, unsure, target), target)
    meant, given = (
        OrtSession(g.to_bytes()).run(None, next(iter(unsure)))[0] for g in (model, made)
    )
    assert meant.max() < 1.5 / 16
    assert np.abs(given - meant).max() < 0.002


def test_a_softmax_may_be_twice_as_sure_as_unsure_ones_are():
    assert found("y = Softmax(r)", -0.1, 0.1)["y"][1] == pytest.approx(2 / 16)
    assert found("y = Softmax(r)", -30, 30)["y"][1] > 0.2
