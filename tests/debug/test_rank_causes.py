"""A scale that is four times too large is ranked first, in any layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import trained
from debug.test_sensitivity import patient
from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.diagnosis.rank_causes import cause_of, rank_causes
from npumake.debug.diagnosis.scale_consistency import with_explicit_clamps
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.float_session import float_session
from npumake.graph import Graph, array, producer
from npumake.graph.qdq import QDQ_OPERATORS, is_quantize
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.target import Activations

LAYERS = [
    *(("repvgg", share) for share in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8)),
    *(("mobilenetv3", share) for share in (0.03, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)),
    *(("transformer", share) for share in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)),
]


def scaled(graph: Graph, name: str, factor: float) -> Graph:
    """The scale of one Q and its DQ, or of one DQ, times `factor`."""
    return altered(graph, name, 1, lambda scale: (scale * factor).astype(np.float32))


def altered(graph: Graph, name: str, at: int, change: Callable[[np.ndarray], np.ndarray]) -> Graph:
    graph = graph.copy()
    (node,) = (node for node in graph.nodes(*QDQ_OPERATORS) if node.name == name)
    value = array(node.inputs[at])
    assert value is not None
    wrong = graph.constant("fault", change(value))
    readers = [use.node for use in node.outputs[0].uses()] if is_quantize(node) else []
    for each in (node, *readers):
        graph.set_inputs(each, {at: wrong})
    return graph


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), LAYERS)
def test_a_scale_times_four_is_named_first(name, share):
    examined = patient(name)
    inputs = {str(value.name) for value in examined.calibrated.inputs}
    layers = [one for one in examined.nodes if one.tensor not in inputs]
    fault = layers[int(share * len(layers))]
    faulty = scaled(examined.calibrated, fault.name, 4.0)
    first = rank_causes(ModelUnderTest(faulty, examined.samples))[0]
    assert first.node in fault.owners
    assert first.saved > 0.5 * first.lost or fault.kind == "weight"
    assert "bits are unused" in first.cause


@pytest.mark.parametrize("name", ["repvgg", "mobilenetv3"])
def test_where_every_grid_fits_the_most_sensitive_node_is_first(name):
    found = rank_causes(patient(name))
    assert found[0].lost == max(one.lost for one in found)
    assert found[0].saved == 0.0


def test_the_cause_of_one_node_is_that_among_all():
    examined = patient("repvgg")
    fault = [one for one in examined.nodes if one.kind == "activation"][3]
    faulty = replace(examined, calibrated=scaled(examined.calibrated, fault.name, 4.0), cache={})
    (first, *_) = rank_causes(faulty)
    assert cause_of(faulty, first.node) == first._replace(is_fault=False)
    (fitting, *_) = rank_causes(examined)
    assert cause_of(examined, fitting.node) == fitting


def test_a_grid_four_times_too_small_clips():
    examined = patient("repvgg")
    fault = [one for one in examined.nodes if one.kind == "activation"][3]
    faulty = replace(examined, calibrated=scaled(examined.calibrated, fault.name, 0.25))
    first = rank_causes(replace(faulty, cache={}))[0]
    assert first.node in fault.owners
    assert first.is_clipped


@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_scale_of_weights_that_its_bias_does_not_know_is_named(number):
    """What is made is four times as large, and so is all behind it."""
    examined = patient("repvgg")
    whole = with_integer_weights(examined.calibrated)
    fault = [node for node in whole.nodes("Conv") if len(node.inputs) > 2][number]
    weight = producer(fault.inputs[1])
    first = rank_causes(ModelUnderTest(scaled(whole, str(weight.name), 4.0), examined.samples))[0]
    assert first.node == fault.name
    assert first.cause.startswith("the scale of its bias is 0.25 times that of its input")


def test_a_zero_point_that_is_off_by_a_quarter_is_named():
    chip = replace(trained.PER_CHANNEL, activations=Activations("int8", False))
    made = trained.calibrated(trained.network("repvgg"), chip)
    examined = replace(patient("repvgg", 32), calibrated=made)
    fault = [one for one in examined.nodes if one.kind == "activation"][2]
    wrong = altered(made, fault.name, 2, lambda zero: (zero + 64).astype(np.int8))
    first = rank_causes(replace(examined, calibrated=wrong))[0]
    assert first.node in fault.owners
    assert "its zero point is off: 25% of its range is unused" in first.cause


def fused() -> ModelUnderTest:
    """As TFLite has it: integer weights and biases, and no Relu where a grid starts at zero."""
    chip = replace(trained.PER_CHANNEL, activations=Activations("int8", False))
    graph = with_integer_weights(trained.calibrated(trained.network("repvgg"), chip))
    for node in graph.nodes("Relu"):
        graph.bypass(node)
    return replace(patient("repvgg", 32), calibrated=graph, cache={})


def behind_clamps(examined: ModelUnderTest) -> list[CalibrationNode]:
    return [one for one in examined.nodes if one.limits[0].item() == 0.0 and one.owners][1:]


def test_a_grid_that_starts_at_zero_stays_a_clamp_when_it_is_taken_out():
    examined = fused()
    assert len(behind_clamps(examined)) >= 3
    assert not any(one.is_fault for one in rank_causes(examined))
    meant = with_explicit_clamps(examined)
    assert len(meant.calibrated.nodes("Clip")) >= 3
    float_model = without(meant.calibrated)
    for feed in trained.samples()[:8]:
        made = (float_session(graph) for graph in (float_model, trained.network("repvgg")))
        (a,), (b,) = (session.run(None, feed) for session in made)
        np.testing.assert_allclose(a, b, atol=0.1 * np.abs(b).max())


@pytest.mark.parametrize("factor", [4.0, 0.25])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_scale_of_a_grid_that_is_a_clamp_is_named_first(number, factor):
    examined = fused()
    fault = behind_clamps(examined)[number]
    wrong = scaled(examined.calibrated, fault.name, factor)
    first = rank_causes(replace(examined, calibrated=wrong, cache={}))[0]
    assert first.node in fault.owners
    assert first.cause.startswith(f"the scale of its output is {factor:.4g} times")


def test_a_zero_point_behind_a_relu_is_named_though_nothing_is_cut_off():
    chip = replace(trained.PER_CHANNEL, activations=Activations("int8", False))
    made = with_integer_weights(trained.calibrated(trained.network("repvgg"), chip))
    examined = replace(patient("repvgg", 8), calibrated=made, cache={})
    fault = behind_clamps(examined)[1]
    wrong = altered(made, fault.name, 2, lambda zero: (zero + 32).astype(np.int8))
    first = rank_causes(replace(examined, calibrated=wrong))[0]
    assert first.node in fault.owners
    assert "its output is never below zero, 13% of its quantized values are negative" in first.cause


def one_channel(scale: np.ndarray) -> np.ndarray:
    return (scale * np.where(np.arange(scale.size) == 3, 4.0, 1.0)).astype(np.float32)


def test_the_scale_of_one_channel_of_weights_is_named():
    examined = patient("repvgg")
    fault = next(one for one in examined.nodes if one.kind == "weight" and one.scale.size > 8)
    wrong = altered(examined.calibrated, fault.name, 1, one_channel)
    first = rank_causes(ModelUnderTest(wrong, examined.samples))[0]
    assert first.node in fault.owners
    assert "times as wide as its values need in channel 3" in first.cause


def test_a_bias_that_contradicts_one_channel_of_weights_is_named():
    examined = patient("repvgg")
    whole = with_integer_weights(examined.calibrated)
    fault = [node for node in whole.nodes("Conv") if len(node.inputs) > 2][2]
    wrong = altered(whole, str(producer(fault.inputs[1]).name), 1, one_channel)
    first = rank_causes(ModelUnderTest(wrong, examined.samples))[0]
    assert first.node == fault.name
    assert first.cause.endswith("0.25 times that of its input times its weights' in channel 3")


@pytest.mark.parametrize("factor", [4.0, 0.25])
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("number", [2, 4])
def test_who_alone_contradicts_the_tensor_it_reads_may_be_wrong_itself(number, at, factor):
    """There are two ways to read it; only one leads nothing behind it astray."""
    examined = fused()
    fault = [node for node in examined.calibrated.nodes("Conv") if len(node.inputs) > 2][number]
    spot = producer(fault.inputs[at])
    wrong = scaled(examined.calibrated, str(spot.name), factor)
    first = rank_causes(replace(examined, calibrated=wrong, cache={}))[0]
    assert first.node == fault.name
    assert first.cause.startswith("the scale of its bias is ")


def test_grids_are_judged_by_all_samples_however_few_are_probed():
    """One that is all but dark makes every grid look too wide."""
    examined = patient("repvgg")
    dark = {name: array * np.float32(0.01) for name, array in examined.samples.read(0).items()}
    feeds = [dark, *examined.samples]
    samples = Samples(tuple(map(str, range(5))), feeds.__getitem__)
    alone = replace(examined, samples=Samples(samples.names[:1], samples.read), cache={})
    assert any(one.is_fault for one in rank_causes(alone))
    few = replace(examined, samples=samples, cache={}, data_num=1)
    assert not any(one.is_fault for one in rank_causes(few))
