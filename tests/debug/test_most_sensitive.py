"""The most sensitive node, against a probe of every node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from debug.test_rank_causes import scaled
from debug.test_sensitivity import patient
from npumake.debug.diagnosis.examination import noise_share
from npumake.debug.diagnosis.most_sensitive import most_sensitive
from npumake.debug.sensitivity import ModelUnderTest, Question, Sums, groups_of, sensitivities

MOVING = ("Reshape", "Transpose", "Flatten", "Squeeze", "MaxPool")


def losses(model: ModelUnderTest) -> dict[str, float]:
    moving = {str(node.name) for node in model.calibrated.nodes(*MOVING)}
    groups = {n: group for n, group in groups_of(model, "node").items() if n not in moving}
    return {name: noise_share(sums) for name, sums in sensitivities(model, groups).items()}


@pytest.mark.parametrize("name", ["repvgg", "mobilenetv3", "transformer"])
@pytest.mark.parametrize("share", [None, 0.1, 0.4, 0.7, 0.95])
def test_it_is_the_node_that_loses_most_of_all(name: str, share: float | None) -> None:
    model = patient(name)
    if share is not None:
        layers = [one for one in model.nodes if one.kind == "activation"]
        fault = layers[int(share * len(layers))].name
        model = replace(model, calibrated=scaled(model.calibrated, fault, 6.0))
    cache: dict[Question, Sums] = {}
    model = replace(model, cache=cache)
    found = most_sensitive(model)
    probes = len(cache)
    every = losses(replace(model, cache={}))
    assert found == max(every, key=every.__getitem__)
    assert probes < len(every) or len(every) < 16


def test_nothing_is_sensitive_where_nothing_is_quantized() -> None:
    model = patient("repvgg")
    assert most_sensitive(replace(model, calibrated=model.real, cache={})) is None
