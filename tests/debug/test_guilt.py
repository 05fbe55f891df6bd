"""Guilt: a scale that is four times too large is named first, whichever layer it was given to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from debug.test_sensitivity import patient

from pipeline.debug.guilt import suspects
from pipeline.debug.sensitivity import Patient
from pipeline.engine.lower import Q
from pipeline.graph import Graph, array

LAYERS = [
    *(("repvgg", share) for share in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8)),
    *(("mobilenetv3", share) for share in (0.03, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)),
    *(("transformer", share) for share in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)),
]


def with_fault(calibrated: Graph, name: str, factor: float) -> Graph:
    """The scale of one calibration node times `factor`."""
    graph = calibrated.copy()
    (quantizer,) = (node for node in graph.nodes(Q) if node.name == name)
    (use,) = quantizer.outputs[0].uses()
    scale = array(quantizer.inputs[1])
    fault = graph.constant("fault", (scale * np.float32(factor)).astype(np.float32))
    graph.set_inputs(quantizer, {1: fault})
    graph.set_inputs(use.node, {1: fault})
    return graph


@pytest.mark.parametrize(("name", "share"), LAYERS)
def test_a_scale_times_four_is_named_first(name, share):
    examined = patient(name)
    inputs = {str(value.name) for value in examined.calibrated.inputs}
    layers = [one for one in examined.nodes if one.tensor not in inputs]
    fault = layers[int(share * len(layers))]
    faulty = with_fault(examined.calibrated, fault.name, 4.0)
    first = suspects(Patient(faulty, examined.samples))[0]
    assert first.node in fault.owners
    assert first.saved > 0.5 * first.lost or fault.kind == "weight"
    assert "bits are unused" in first.cause


@pytest.mark.parametrize("name", ["repvgg", "mobilenetv3"])
def test_where_every_grid_fits_the_most_sensitive_node_is_first(name):
    found = suspects(patient(name))
    assert found[0].lost == max(one.lost for one in found)
    assert found[0].saved == 0.0


def test_a_grid_four_times_too_small_clips():
    examined = patient("repvgg")
    fault = [one for one in examined.nodes if one.kind == "activation"][3]
    faulty = replace(examined, calibrated=with_fault(examined.calibrated, fault.name, 0.25))
    first = suspects(replace(faulty, remembered={}))[0]
    assert first.node in fault.owners
    assert first.is_clipped
