"""Methods: all grids but one are as a method chooses them, and that one is the fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

import trained
from debug.test_rank_causes import scaled
from debug.test_sensitivity import patient
from npumake.data.samples import Samples
from npumake.debug.diagnosis.inferred_method import InferredMethod, infer_method, odd_weights
from npumake.debug.diagnosis.range_fit import WIDE_REACH, Fit, fits
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import producer
from npumake.quant.qdq.integers import with_integer_weights


def by(method: str, name: str) -> ModelUnderTest:
    made = trained.calibrated(trained.network(name), trained.PER_CHANNEL, method)
    every = trained.samples()
    samples = Samples(tuple(map(str, range(len(every)))), every.__getitem__)
    return replace(patient(name), calibrated=made, samples=samples, cache={})


def of(examined: ModelUnderTest) -> InferredMethod | None:
    names = [one.name for one in examined.nodes]
    return infer_method(examined, names, names)


@pytest.mark.parametrize("method", ["kl", "max", "max_percentile", "mse", "moving_average"])
def test_the_method_that_chose_the_grids_is_told_by_them(method):
    found = of(by(method, "repvgg"))
    assert found is not None
    assert (found.method, found.is_exact) == (method, True)
    assert all(ratio == pytest.approx(1.0, rel=1e-5) for ratio in found.ratios.values())


def test_other_samples_make_no_grid_odd_and_nothing_certain():
    examined = by("kl", "mobilenetv3")
    few = Samples(examined.samples.names[:16], examined.samples.read)
    found = of(replace(examined, samples=few))
    assert found is not None
    assert not found.is_exact
    assert found.odd == []


def test_grids_that_no_method_chose_are_explained_by_none():
    examined = by("max", "repvgg")
    activations = [one.name for one in examined.nodes if one.kind == "activation"]
    for number, name in enumerate(activations):
        by_chance = (1.9, 1.3, 2.3, 1.6)[number % 4]
        examined = replace(examined, calibrated=scaled(examined.calibrated, name, by_chance))
    assert of(examined) is None


def reaches_little_more(examined: ModelUnderTest) -> str:
    """The calibration node that kl cuts off deepest: four times that is hardly too wide."""
    as_max = of(by("max", "repvgg"))
    inner = [one for one in examined.nodes if one.name in as_max.ratios and not one.output_indices]
    depth = {one.name: float(one.scale / as_max.fresh[one.name].scale) for one in inner}
    deepest = min(depth, key=lambda name: depth[name])
    assert 4 * depth[deepest] < WIDE_REACH
    return deepest


@pytest.mark.slow
def test_a_grid_four_times_too_wide_for_kl_is_named_though_it_holds_little_more_than_its_numbers():
    examined = by("kl", "repvgg")
    (fault,) = (one for one in examined.nodes if one.name == reaches_little_more(examined))
    wrong = ModelUnderTest(
        scaled(examined.calibrated, fault.name, 4.0), examined.samples, data_num=2
    )
    first = rank_causes(wrong)[0]
    assert first.node in fault.owners
    assert first.is_fault
    assert "`kl`, which all others follow, " in first.cause


@pytest.mark.slow
def test_numbers_cut_off_behind_a_wrong_weight_are_no_fault_where_grids_before_it_are_right():
    """A MatMul has no bias that could contradict its scale, and its product is cut off further."""
    examined = by("kl", "transformer")
    integers = with_integer_weights(examined.calibrated)
    layers = [node for node in integers.nodes("MatMul") if producer(node.inputs[1]) is not None]
    fault = [node for node in layers if not producer(node.inputs[1]).inputs[0].uses()[1:]][1]
    wrong = scaled(integers, str(producer(fault.inputs[1]).name), 4.0)
    first = rank_causes(ModelUnderTest(wrong, examined.samples, data_num=2))[0]
    assert first.node == fault.name


def test_weights_on_a_grid_four_times_too_wide_are_odd_and_no_others():
    examined = by("max", "mobilenetv3")
    assert odd_weights(weight_fits(examined)) == []
    fault = [one.name for one in examined.nodes if one.kind == "weight"][5]
    wrong = replace(examined, calibrated=scaled(examined.calibrated, fault, 4.0))
    assert odd_weights(weight_fits(wrong)) == [fault]


def weight_fits(examined: ModelUnderTest) -> dict[str, Fit]:
    few = Samples(examined.samples.names[:1], examined.samples.read)
    return fits(replace(examined, samples=few))
