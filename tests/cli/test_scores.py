"""npumake list --scores: the figures of current builds, and names that work where one stands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from npumake.cli.main import main
from npumake.cli.projects import place, typed
from workspaces import Workspace, remember_code


def scores(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main(["list", *words, "--scores", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_build_has_a_line_with_its_cosines(
    fresh: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_code(fresh.root)
    monkeypatch.chdir(fresh.project)
    rows = scores(capsys)
    assert {row["cosine"] for row in rows} == {None}
    assert fresh.npumake("build").returncode == 0
    rows = scores(capsys)
    assert rows
    for row in rows:
        document = json.loads(Path(f"out/comparison.{row['target']}.json").read_text())
        assert row["cosine"] == min(each["cosine"] for each in document["outputs"])
        assert row["bytes"] == Path(f"out/digits.{row['target']}.hybrid").stat().st_size
    assert main(["list", "--scores", "--format", "csv"]) == 0
    table = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert [row["Target"] for row in table] == [row["target"] for row in rows]
    assert [row["Cosine"] for row in table] == [f"{row['cosine']:.6f}" for row in rows]


@pytest.mark.parametrize("start", ["", "projects", "projects/digits", "elsewhere/deep"])
@pytest.mark.parametrize("group", ["digits", "digits@gentle"])
def test_a_hint_names_the_project_from_everywhere(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch, start: str, group: str
) -> None:
    (fresh.root / start).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(fresh.root / start)
    _, named = place(typed(fresh.project, group))
    assert named == group
