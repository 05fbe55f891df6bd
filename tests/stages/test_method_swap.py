"""Another calibration method reads the statistics: no network is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npumake.cli.projects import selected
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError
from npumake.make.build import Build
from npumake.make.maker import run_stage
from npumake.quant.search.recipe import Recipe
from workspaces import Workspace

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


def recipe_of(build: Build, target: str, **said: object) -> Recipe:
    node = build.plan.node(f"digits:{target}/recipe")
    calibration = {**node.params["calibration"], **said}
    node = replace(node, params={**node.params, "calibration": calibration})
    made = run_stage(build, node, build.made_inputs(node))
    assert isinstance(made, Recipe)
    return made


@pytest.mark.parametrize("method", ["kl", "max", "mix"])
def test_per_channel_goes_with_every_method(built_once: Workspace, method: str) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    made = recipe_of(build, "rdk-x5", method=method, per_channel=True)
    assert (made.method, made.switches) == (method, ("per_channel",))


def test_per_channel_is_refused_where_the_chip_s_tool_has_no_such_thing(
    built_once: Workspace,
) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    with pytest.raises(ProjectError, match="ara240 has one scale for all channels") as caught:
        recipe_of(build, "ara240", per_channel=True)
    assert str(caught.value.where) == "calibration.per_channel"


@pytest.mark.slow
def test_the_search_of_default_does_run_its_candidates(
    built_once: Workspace, runs: list[str]
) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    node = build.plan.node("digits:rdk-x5/recipe")
    calibration = {**node.params["calibration"], "method": "default"}
    node = replace(node, params={**node.params, "calibration": calibration})
    run_stage(build, node, build.made_inputs(node))
    assert set(runs) == {"OrtSession"}
