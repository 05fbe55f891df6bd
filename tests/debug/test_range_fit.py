"""Fit: a grid is too wide for its numbers, but not for what they stand for."""

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.debug.diagnosis.range_fit import fits
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

BACKGROUND = np.linspace(-6, -3, 8 * 16, dtype=np.float32).reshape(8, 1, 16)
FED = Samples(tuple(map(str, range(8))), lambda index: {"x": BACKGROUND[index]})


@pytest.mark.parametrize("chip", ["ara240", "rdk-x3"])
def test_the_grid_of_a_score_may_be_wider_than_the_scores_of_no_object(chip):
    text = "a (float[1,16] x) => (float[1,16] y) { c = Add(x, x)  y = Sigmoid(c) }"
    graph, target = upgraded(parse_text(text)).with_shapes(), read_target(chip)
    found = recipe(graph, observe(graph, FED), FED, Calibration("max"), target)
    examined = ModelUnderTest(calibrated(graph, found, FED, target), FED)
    assert any(0.99 < one.threshold < 1.01 for one in examined.nodes)
    assert [name for name, fit in fits(examined).items() if fit.is_fault] == []


def test_a_grid_may_be_wider_than_its_numbers_by_more_than_float32_holds():
    """Of numbers that are all but zero: one scale over the other is no float32."""
    text = "a (float[1,2] x) => (float[1,2] y) { c = Add(x, x)  y = Sigmoid(c) }"
    graph, target = upgraded(parse_text(text)).with_shapes(), read_target("rdk-x3")
    shown, met = ([{"x": np.float32([[size, 0]])}] for size in (100, 1e-37))
    shown, met = (Samples(("0",), fed.__getitem__) for fed in (shown, met))
    found = recipe(graph, observe(graph, shown), shown, Calibration("max"), target)
    (fit, *_) = fits(ModelUnderTest(calibrated(graph, found, shown, target), met)).values()
    assert fit.reach > float(np.finfo(np.float32).max)
