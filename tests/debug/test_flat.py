"""What is cut off in front of what saturates is nobody's fault, unless it shows behind."""

from __future__ import annotations

import numpy as np
import pytest

from debug.test_rank_causes import scaled
from npumake.data.samples import Samples
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration
from npumake.quant.calibration.activation_aware_ranges import clipping_errors
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

MODEL = """a (float[1,8,4,4] x) => (float[1,8,4,4] y) <float[8,8,1,1] w, float[8,8,1,1] u>
{ c = Conv(x, w)  p = GlobalAveragePool(c)  g = Conv(p, u)  s = HardSigmoid<alpha=0.2>(g)
  y = Mul(c, s) }"""
GATE, REACH = "g", 2.5  # where HardSigmoid is flat


@pytest.fixture(scope="module")
def graph():
    """A gate that is shut or open nearly always."""
    rng = np.random.default_rng(1)
    text = MODEL
    for name, spread in (("w", 1.0), ("u", 12.0)):
        numbers = ",".join(f"{v:.4f}" for v in rng.normal(size=64) * spread)
        text = text.replace(f"[8,8,1,1] {name}", f"[8,8,1,1] {name} = {{{numbers}}}", 1)
    return upgraded(parse_text(text)).with_shapes()


def examined(graph, chip):
    rng = np.random.default_rng(2)
    feeds = [{"x": rng.normal(size=(1, 8, 4, 4)).astype(np.float32)} for _ in range(16)]
    samples = Samples(tuple(map(str, range(16))), feeds.__getitem__)
    target = read_target(chip)
    found = recipe(graph, observe(graph, samples), samples, Calibration("kl"), target)
    return ModelUnderTest(calibrated(graph, found, samples, target), samples, data_num=4)


@pytest.mark.parametrize("chip", ["ara240", "rdk-x5"])
def test_a_gate_that_is_shut_is_no_fault_and_hides_none(graph, chip):
    patient = examined(graph, chip)
    (gate,) = (one for one in patient.nodes if one.tensor == GATE)
    assert max(map(abs, gate.limits)) < 2 * REACH  # of numbers some ten times as far
    assert not any(one.is_fault for one in rank_causes(patient))
    weight = next(one for one in patient.nodes if one.kind == "weight" and GATE in one.owners)
    for fault, factor in ((weight, 4.0), (gate, 0.25)):
        wrong = ModelUnderTest(
            scaled(patient.calibrated, fault.name, factor), patient.samples, data_num=4
        )
        first = rank_causes(wrong)[0]
        assert first.node == GATE
        assert first.is_fault


def test_how_far_what_is_made_moves(graph):
    far = (-10.0, 10.0)
    assert clipping_errors(graph, {GATE: (far, (-2.5, 2.5))}) == {GATE: {"s": 0.0}}
    found = clipping_errors(graph, {GATE: (far, (-2.5, 1.0)), "c": (far, (-1.0, 1.0))})
    assert found == {GATE: {"s": pytest.approx(0.3)}}
