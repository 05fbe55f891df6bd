"""Another calibration method reads the statistics: no network is run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from workspaces import Workspace

from pipeline.cli.projects import selected
from pipeline.engine.ort import OrtSession
from pipeline.engine.reference import ReferenceSession
from pipeline.make.maker import run_stage
from pipeline.quant.recipe import Recipe

READS_STATISTICS = (
    "kl",
    "max",
    "max_percentile",
    "mix",
    "moving_average",
    "mse",
    "skip",
    "standard",
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The class of every session that is run from now on."""
    counted: list[str] = []
    for session in (OrtSession, ReferenceSession):

        def run(self, names, feeds, plain=session.run, called=session.__name__):  # type: ignore[no-untyped-def]
            counted.append(called)
            return plain(self, names, feeds)

        monkeypatch.setattr(session, "run", run)
    return counted


@pytest.mark.parametrize("method", READS_STATISTICS)
def test_a_method_is_swapped_without_an_inference(
    built_once: Workspace, runs: list[str], method: str
) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    for stage in ("recipe", "calibrated", "quantized"):
        node = build.plan.node(f"digits:rdk-x5/{stage}")
        if stage == "recipe":
            calibration = {**node.params["calibration"], "method": method}
            node = replace(node, params={**node.params, "calibration": calibration})
        made = run_stage(build, node, build.made_inputs(node))
        assert not isinstance(made, Recipe) or made.method == method
    assert runs == []


def test_the_search_of_default_does_run_its_candidates(
    built_once: Workspace, runs: list[str]
) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    node = build.plan.node("digits:rdk-x5/recipe")
    calibration = {**node.params["calibration"], "method": "default"}
    node = replace(node, params={**node.params, "calibration": calibration})
    run_stage(build, node, build.made_inputs(node))
    assert set(runs) == {"OrtSession"}
