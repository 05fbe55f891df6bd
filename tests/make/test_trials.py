"""Trials: each is made once, whoever asks, and a search that was interrupted goes on."""

from __future__ import annotations

import pytest

from npumake.cli.projects import selected
from npumake.make.trials import Trials
from npumake.progress import listening
from npumake.quant.search.objective import Objective, choose_promotions
from workspaces import Workspace

WISH = Objective(0.9998)


@pytest.fixture
def here(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.delenv("CI", raising=False)
    return built


def trials(here: Workspace, target: str = "rdk-x5") -> Trials:
    (build,) = selected(here.project, ["digits"])
    nodes = (build.plan.node(f"digits:{target}/{name}") for name in ("calibrated", "comparison"))
    return Trials(build, *nodes, "int16")


@pytest.mark.slow
def test_the_second_search_measures_nothing_and_finds_the_same(here: Workspace) -> None:
    first, second = trials(here), trials(here)
    assert choose_promotions(first, WISH) == choose_promotions(second, WISH)
    assert (first.recalled, second.measured) == (0, 0)
    assert first.measured == second.recalled > len(first.candidates)


@pytest.mark.slow
def test_an_interrupted_search_goes_on_where_it_was(here: Workspace) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    begun, whole = trials(here), trials(here)
    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        choose_promotions(begun, WISH)
    assert begun.measured == 2 + 4  # nothing promoted, everything, then one node after the other
    choose_promotions(whole, WISH)
    assert whole.recalled == begun.measured
    again = trials(here)
    choose_promotions(again, WISH)
    assert again.recalled == begun.measured + whole.measured


@pytest.mark.slow
def test_another_metric_and_other_limits_use_the_same_trials(here: Workspace) -> None:
    first, second = trials(here), trials(here)
    choose_promotions(first, WISH)
    choose_promotions(second, Objective(0.9998, most_nodes=30))
    assert second.measured == 0
    third = trials(here)
    assert choose_promotions(third, Objective(1.0, "agreement")).suffices
    assert (third.measured, third.recalled) == (0, 1)


@pytest.mark.slow
def test_another_target_and_another_calibration_use_none_of_them(here: Workspace) -> None:
    choose_promotions(trials(here), WISH)
    other = trials(here, "ara240")
    choose_promotions(other, WISH)
    assert other.recalled == 0
    yaml = here.project / "project.yaml"
    yaml.write_text(yaml.read_text().replace("method: max", "method: kl"))
    here.doit()
    anew = trials(here)
    choose_promotions(anew, WISH)
    assert anew.recalled == 0
