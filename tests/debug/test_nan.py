"""NaN is NaN wherever it is told, and no build passes with one."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from engine.operators import case
from npumake import digest
from npumake.debug.compare import compare
from npumake.debug.metrics import METRICS
from npumake.errors import StageError
from npumake.evaluate.figures import Figures
from npumake.evaluate.gates import BuildFigures, gate_condition
from npumake.graph import parse_text
from npumake.kernels.measure import Agreement, agreement, cosine, sqnr_db, worst
from npumake.project.sections import Calibration, Gate
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

NAN = np.array([1.0, math.nan], np.float32)
ONES = np.ones(2, np.float32)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_nan_is_nan(name):
    assert math.isnan(METRICS[name].figure([agreement(ONES, ONES), agreement(ONES, NAN)]))
    assert math.isnan(METRICS[name].figure([agreement(ONES, NAN), agreement(ONES, ONES)]))


@pytest.mark.parametrize("order", [[math.nan, 0.5], [0.5, math.nan]])
def test_the_worst_of_several_is_nan_where_one_is(order):
    assert math.isnan(worst(order))


def test_the_lowest_float_has_a_cosine_and_a_noise():
    lowest = np.full(4, np.finfo(np.float32).min, np.float32)
    assert cosine(lowest, lowest) == pytest.approx(1.0)
    assert cosine(lowest, -lowest / 3) == pytest.approx(-1.0)
    assert sqnr_db(ONES * 1e-30, ONES * np.float32(3e38)) < -600
    assert Agreement(aa=1e-300, squared=1e300).sqnr_db == -math.inf


def test_a_number_that_is_none_is_null_in_json():
    text = digest.text({"a": [math.nan, math.inf, 1.5], "b": (-math.inf,)})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": [None, None, 1.5], "b": [None]}


def test_figures_of_nan_are_kept(tmp_path):
    path = tmp_path / "figures.json"
    Figures("float", 1, "cosine", {"cosine": math.nan}).save(path)
    assert math.isnan(Figures.load(path).value)


@pytest.mark.parametrize("gate", [Gate(cosine=0.9), Gate(metric="cosine", max_drop=1.0)])
def test_nan_meets_no_gate(gate):
    scores = [Figures(n, 1, "cosine", {"cosine": v}) for n, v in (("float", 1.0), ("q", math.nan))]
    assert not gate_condition(gate, 0, BuildFigures(scores, math.nan, 0)).met


SHAPE = (1, 64)


def fed():
    """x is never below x2; rounded to grids of their own, it is."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-5, 5, SHAPE).astype(np.float32)
    x2 = x - rng.uniform(0, 0.01, SHAPE).astype(np.float32)
    x2[0, 0] = -7.3
    return [{"x": x, "x2": x2}]


def compared(body, **constants):
    target, feeds = read_target("rdk-x5"), fed()  # its grids are symmetric
    graph = parse_text(case(body, x=SHAPE, x2=SHAPE, **constants))
    recipe = ranges_by_method(graph, observe(graph, feeds), Calibration("max"), symmetric=True)
    made = calibrated_with(graph, recipe, target, DEFAULT)
    return compare(graph, made, quantized(made, target), feeds, target)


def test_what_makes_nan_once_it_is_quantized_fails_the_build_by_name():
    with pytest.raises(StageError, match="it produces NaN when quantized") as caught:
        compared("d = Sub(x, x2)  r = Sqrt(d)  y = Mul(r, r)")
    assert caught.value.where == "r"


def test_done_as_the_hint_says_it_builds():
    found = compared("d = Sub(x, x2)  c = Clip(d, low)  r = Sqrt(c)  y = Mul(r, r)", low=0.0)
    assert math.isfinite(found.outputs[0].cosine)
