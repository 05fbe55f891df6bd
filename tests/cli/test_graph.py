"""`npumake graph`: the build with its states and reasons, for people, machines and pages."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from npumake.cli.main import main
from npumake.report.build_graph import CLASSES
from workspaces import Workspace

Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(built.root)
    monkeypatch.delenv("CI", raising=False)
    return built


def edit(workspace: Workspace, old: str, new: str) -> None:
    file = workspace.project / "project.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_every_node_has_a_line_with_its_state(here: Workspace, capsys: Output) -> None:
    assert main(["graph"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "digits: 16 current"
    assert [line.split()[0] for line in lines] == ["current"] * 16
    assert lines[0].split()[-1] == "original_float"


@pytest.mark.parametrize("columns", ["80", "60", "40"])
@pytest.mark.parametrize("old", ["method: max", "scale: 0.0625"])
def test_it_fits_the_terminal_and_gives_the_reason(here, capsys, monkeypatch, columns, old) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    edit(here, old, {"method: max": "method: kl", "scale: 0.0625": "scale: 0.05"}[old])
    assert main(["graph"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    words = " ".join(" ".join(lines).replace("│", " ").split())
    assert {"method: max": "max → kl", "scale: 0.0625": "0.0625 → 0.05"}[old] in words


def test_a_node_that_only_follows_has_no_reason(here: Workspace, capsys: Output) -> None:
    edit(here, "method: max", "method: kl")
    main(["graph"])
    reasons = [line for line in capsys.readouterr().out.splitlines() if "→" in line]
    assert len(reasons) == 2  # the recipe of each target


def test_a_machine_reads_states_reasons_and_edges(here: Workspace, capsys: Output) -> None:
    edit(here, "method: max", "method: kl")
    assert main(["graph", "digits", "--json"]) == 0
    rows = {row["node"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["digits:rdk-x5/recipe"]["status"] == "would run"
    assert rows["digits:rdk-x5/calibrated"]["follows"]
    assert rows["digits:statistics"]["inputs"]["samples"] == "digits:samples"
    assert all(each in rows for row in rows.values() for each in row["inputs"].values())


def test_the_picture_has_a_box_per_node_in_the_colour_of_its_state(
    here: Workspace, capsys: Output, tmp_path: Path
) -> None:
    edit(here, "method: max", "method: kl")
    file = tmp_path / "build.svg"
    assert main(["graph", "--svg", f"{file}"]) == 0
    assert capsys.readouterr().out == ""
    first = file.read_bytes()
    text = first.decode()
    assert text.count(f'class="{CLASSES["current"]}"') == 4
    assert text.count(f'class="{CLASSES["would run"]}"') == 12
    assert "calibration.method: max → kl" in text
    ElementTree.fromstring(text)
    main(["graph", "--svg", f"{file}"])
    assert file.read_bytes() == first


def test_a_variant_is_drawn_with_what_it_is_made_from(here: Workspace, capsys: Output) -> None:
    here.project.joinpath("variants.yaml").write_text("kl: {calibration: {method: kl}}\n")
    assert main(["graph", "digits@kl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("@kl:rdk-x5/compiled" in line for line in lines)
    assert any(line.endswith(" original_float") for line in lines)
    assert not any(" rdk-x5/compiled" in line for line in lines)


@pytest.mark.parametrize("name", ["digit", "digits@kl", "projects/digits@p"])
def test_an_unknown_name_is_one_error(here: Workspace, capsys: Output, name: str) -> None:
    assert main(["graph", name]) == 2
    assert capsys.readouterr().err.startswith("error: no ")


def test_a_picture_that_cannot_be_written_is_one_error(here: Workspace, capsys: Output) -> None:
    here.root.joinpath("file").write_text("")
    assert main(["graph", "--svg", "file/build.svg"]) == 5
    assert capsys.readouterr().err.startswith("error: cannot write file")


def test_the_page_of_a_report_draws_the_build(reported_once: Workspace) -> None:
    page = (reported_once.project / "out" / "report.html").read_text(encoding="utf-8")
    start = page.index("<svg")
    root = ElementTree.fromstring(page[start : page.index("</svg>") + len("</svg>")])
    titles = [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("digits@kl:rdk-x5/compiled: made") for title in titles)
    assert any("model.path: model.onnx" in title for title in titles)
