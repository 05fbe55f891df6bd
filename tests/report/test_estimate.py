"""The latency a report tells is that of npumake.perf, and says where it is only a bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npumake.perf.estimate import estimate_bundle
from npumake.report.estimate import estimate_of
from npumake.targets.cost import Cost
from perf.test_estimate import BUNDLE, UNFITTED, X5

DATA = BUNDLE.to_bytes()


def test_without_a_bandwidth_it_is_what_computing_takes() -> None:
    found = estimate_of(DATA, UNFITTED)
    assert (found["is_bound"], found["between_ms"]) == (True, None)
    assert found["latency_ms"] == pytest.approx(
        1000 * estimate_bundle("m", BUNDLE, UNFITTED).at_least
    )
    assert any("DDR" in said for said in found["said"])


def test_with_all_figures_it_is_the_latency() -> None:
    chip = replace(X5, cost=Cost(macs=1e9, ddr=1e6, on_chip=0))
    latency = estimate_bundle("m", BUNDLE, chip).latency
    assert latency is not None
    found = estimate_of(DATA, chip)
    assert not found["is_bound"]
    assert found["latency_ms"] == pytest.approx(1000 * latency, rel=1e-5)


def test_a_fitted_one_lies_between_two() -> None:
    found = estimate_of(DATA, X5)
    low, high = found["between_ms"]
    assert low < found["latency_ms"] < high
    assert not found["is_bound"]
    assert any("fitted on" in said for said in found["said"])


def test_without_any_figure_there_is_none() -> None:
    assert estimate_of(DATA, replace(X5, cost=Cost())) is None
