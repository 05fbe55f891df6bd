"""Remedy: the YAML that is told makes what was tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.graph import parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import ranges_by_method
from npumake.targets.reader import read_target

RELUS = parse_text(
    """a (float[1,2,8,8] x) => (float[] y) <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
    { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w) }"""
)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_method_is_told_with_the_grids_that_a_search_had_chosen(symmetric: bool) -> None:
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    feeds = [{"x": rng.normal(size=(1, 2, 8, 8)).astype(np.float32)} for rng in rngs]
    samples = Samples(tuple(map(str, range(8))), feeds.__getitem__)
    statistics, chip = observe(RELUS, samples), read_target("rdk-x5")
    cut_off = Calibration("max_percentile", percentile=0.5)
    recipe = ranges_by_method(RELUS, statistics, cut_off, symmetric)
    asked = Calibration("default")
    making = CalibrationInputs(
        RELUS, statistics, recipe, samples, chip, NO_OPERATORS, asked, DEFAULT
    )
    remedy = remedied(making, "r", True, 0.9)
    assert remedy is not None
    said = yaml.safe_load(remedy.yaml)["calibration"]
    assert said["method"] == "max"
    told = replace(Calibration(), **said).symmetric
    assert (chip.activations.symmetric if told is None else told) == symmetric
