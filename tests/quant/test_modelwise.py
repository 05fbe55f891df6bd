"""The vendors' own search: combinations in their order, by the cosine of the outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.float_session import float_session
from npumake.errors import ProjectError
from npumake.graph import Graph, parse_text
from npumake.project.sections import Calibration, Modelwise, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.search.methods import calibrated_with
from npumake.quant.search.recipe import Recipe
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

GRAPH = parse_text(
    """a (float[1,2,8,8] x) => (float[1,2,8,8] y, float[1,2,8,8] z)
    <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
    { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w)  t = Tanh(c)  z = Conv(t, w) }"""
)
NEVER = 2.0  # a similarity that no candidate reaches: every combination is tried
# What the log of hb_mapper 1.24.3 calls its methods.
METHODS = (
    "max-percentile:percentile=0.99995",
    "max",
    "kl:num_bin=1024,max_num_bin=16384",
)
# per_channel and asymmetric, in the order of the passes over the samples that the logs show.
BOTH = ((False, False), (False, True), (True, False), (True, True))


def samples(outlier: float = 40.0) -> Samples:
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.normal(size=(1, 2, 8, 8)).astype(np.float32)} for _ in range(16)]
    feeds[5]["x"][0, 0, 0, 0] = outlier
    return Samples(tuple(map(str, range(16))), lambda index: feeds[index])


def searched(
    chip: str = "rdk-x5",
    graph: Graph = GRAPH,
    quantization: Quantization | None = None,
    calibration: Calibration | None = None,
    **search: Any,
) -> Recipe:
    asked = replace(
        calibration or Calibration("modelwise"),
        modelwise=Modelwise(**{"similarity": NEVER} | search),
    )
    fed = samples()
    more = {} if quantization is None else {"quantization": quantization}
    return recipe(graph, observe(graph, fed), fed, asked, read_target(chip), **more)


def names(chip: str) -> list[str]:
    grids = read_target(chip).activations
    return [
        name + ",per_channel" * channels + ",asymmetric" * asymmetric
        for channels, asymmetric in BOTH
        for name in METHODS
        if grids.per_channel >= channels and grids.may_be_asymmetric >= asymmetric
    ]


@pytest.mark.parametrize("chip", ["rdk-x3", "rdk-x5", "rdk-ultra", "nash-e", "nash-b"])
def test_it_tries_the_combinations_that_the_chip_has_and_nothing_else(chip: str):
    found = searched(chip)
    assert [trial.what for trial in found.trials] == names(chip)
    assert set(found.switches) <= {"per_channel"}
    assert found.wide == found.sensitive == ()


def test_it_stops_at_the_first_that_is_similar_enough():
    every = searched()
    for count, trial in enumerate(every.trials, 1):
        if trial.cosine == max(one.cosine for one in every.trials[:count]):
            found = searched(similarity=trial.cosine)
            assert found.trials[:-1] == tuple(
                replace(one, kept=False) for one in every.trials[: len(found.trials) - 1]
            )
            assert found.trials[-1].cosine >= trial.cosine
            assert found.trials[-1].kept


def test_where_none_is_the_first_of_the_best_is_kept():
    found = searched()
    (kept,) = [index for index, trial in enumerate(found.trials) if trial.kept]
    cosines = [trial.cosine for trial in found.trials]
    assert kept == cosines.index(max(cosines))


def test_the_figure_is_the_mean_cosine_of_the_outputs_for_the_first_sample():
    found = searched(
        methods=("max",), percentiles=(1.0,), per_channel=(False,), asymmetric=(False,)
    )
    chip, first = read_target("rdk-x5"), samples().read(0)
    made = calibrated_with(GRAPH, found, chip, Quantization())
    a, b = (float_session(graph).run(None, first) for graph in (GRAPH, made))
    cosines = [
        float(np.vdot(x, y) / np.linalg.norm(x) / np.linalg.norm(y))
        for x, y in zip(a, b, strict=True)
    ]
    assert found.trials[0].cosine == pytest.approx(np.mean(cosines), abs=1e-6)


def test_its_ranges_are_those_of_the_method_it_names_over_all_samples():
    found = searched(
        per_channel=(False,), asymmetric=(False,), methods=("max",), percentiles=(0.99,)
    )
    said = Calibration("max_percentile", 0.99)
    assert found.ranges == ranges(GRAPH, observe(GRAPH, samples()), said, True)
    assert (found.method, found.percentile) == ("max_percentile", 0.99)


def test_the_lines_are_those_of_the_vendor_s_log():
    found = searched(methods=("kl",), per_channel=(True,), asymmetric=(False,))
    assert "Select kl:num_bin=1024,max_num_bin=16384,per_channel method." in found.lines
    assert found.lines[-1] == "Perchannel quantization is enabled."
    assert "cosine-similarity" in found.lines[0]
    alone = searched(
        methods=("max",), percentiles=(1.0,), per_channel=(False,), asymmetric=(False,)
    )
    assert alone.lines[-1] == "Select max method."


@pytest.mark.parametrize("metric", ["mse", "mae", "mre", "sqnr", "chebyshev"])
def test_another_metric_chooses_by_that(metric: str):
    found = searched(metric=metric)
    figures = [trial.closeness for trial in found.trials]
    best = max if metric == "sqnr" else min
    assert figures.index(best(figures)) == [trial.kept for trial in found.trials].index(True)


def test_a_switch_that_the_project_asks_for_stays_on_and_no_other_is():
    found = searched(quantization=Quantization(bias_correction=True), per_channel=(False,))
    assert found.switches == ("bias_correction",)


def test_a_wider_search_is_had_for_the_asking():
    found = searched(calibration=Calibration("modelwise", recipe="best"))
    assert any("mse" in trial.what for trial in found.trials)


def test_what_the_chip_cannot_do_is_an_error_where_nothing_else_is_listed():
    with pytest.raises(ProjectError, match="has no zero points"):
        searched("rdk-x3", asymmetric=(True,))
    with pytest.raises(ProjectError, match="one scale for all channels"):
        searched("nash-b", per_channel=(True,))


def test_it_is_saved_and_loaded(tmp_path):
    found = searched()
    found.save(tmp_path / "r.json")
    assert Recipe.load(tmp_path / "r.json") == found


@pytest.mark.parametrize("empty", ["methods", "per_channel", "percentiles"])
def test_an_empty_list_is_an_error(empty: str):
    lists: dict[str, Any] = {"methods": ("max",), empty: ()}
    with pytest.raises(ProjectError, match="nothing to try"):
        searched(**lists)
