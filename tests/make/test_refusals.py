"""A target that is refused stops nothing but itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import npumake
from npumake.errors import PipelineError
from npumake.make.node import Node, without_refused
from workspaces import Workspace, add_report, copied, lay_out, made

REFUSED = "rdk-x5: {quantization: {cpu: [nothing]}}"
MESSAGE = "the optimized model has no node `nothing`"
ORDERS = [(REFUSED, "ara240"), ("ara240", REFUSED), ("ara240", REFUSED, "sl1680")]
OWN = {"calibrated", "comparison", "compiled", "compiled_check", "quantized", "recipe"}


def target_list(workspace: Workspace, targets: tuple[str, ...]) -> Workspace:
    file = workspace.project / "project.yaml"
    text = file.read_text()
    lines = "".join(f"  - {target}\n" for target in targets)
    file.write_text(text[: text.index("targets:")] + "targets:\n" + lines)
    return workspace


@pytest.fixture(scope="module")
def half_once(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A project with a report; one of its two targets was refused."""
    workspace = target_list(lay_out(tmp_path_factory.mktemp("half") / "w"), ORDERS[0])
    add_report(workspace)
    (workspace.project / "variants.yaml").unlink()
    workspace.npumake("build", check=False)
    return workspace


@pytest.fixture
def half(half_once: Workspace, tmp_path: Path) -> Workspace:
    return copied(half_once, tmp_path / "w")


def page_data(workspace: Workspace) -> dict:
    page = (workspace.project / "out" / "report.html").read_text()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(data)


@pytest.mark.slow
@pytest.mark.parametrize("targets", ORDERS)
@pytest.mark.parametrize("options", [(), ("-n", "1"), ("-n", "2")])
@pytest.mark.parametrize("command", ["doit", "npumake"])
def test_the_other_targets_are_built(tmp_path, targets, options, command) -> None:
    workspace = target_list(lay_out(tmp_path / "w"), targets)
    if command == "doit":
        run, code = workspace.doit(*options, check=False), 1
    else:
        run, code = workspace.npumake("build", *options, check=False), 2
    assert run.returncode == code
    assert made(run, "failed") == {"rdk-x5/recipe", "rdk-x5/recipe:"}  # the second under the tables
    assert run.stdout.count("error:") == 1
    others = {target for target in targets if target != REFUSED}
    assert {f"{t}/{stage}" for t in others for stage in OWN} <= made(run, "made")
    assert not [name for name in made(run, "made") if "rdk-x5" in name]


@pytest.mark.slow
def test_the_report_has_the_others_and_the_error(half: Workspace) -> None:
    data = page_data(half)
    assert [each["name"] for each in data["builds"]] == ["digits:ara240"]
    ((name, what),) = [(each["name"], each["what"]) for each in data["refused"]]
    assert (name, what) == ("digits:rdk-x5", MESSAGE)
    assert not [row for row in data["provenance"] if "rdk-x5" in row["node"]]
    assert (half.project / "out" / "evaluation.ara240.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2"), ("--executor", "threads", "-n", "2")])
def test_a_second_build_repeats_the_error_alone(half: Workspace, options) -> None:
    run = half.npumake("build", *options, check=False)
    assert (run.returncode, made(run, "made"), made(run, "recalled")) == (2, set(), {"report"})
    assert run.stdout.count("error:") == 1


@pytest.mark.slow
def test_the_report_is_whole_when_the_target_is_accepted_and_half_when_refused_again(half) -> None:
    before = page_data(half)
    target_list(half, ("rdk-x5", "ara240"))
    assert "report" in made(half.doit(), "made")
    whole = page_data(half)
    assert (len(whole["builds"]), whole["refused"]) == (2, [])
    target_list(half, ORDERS[0])  # artifacts of the refused target are there, of the build before
    assert half.doit(check=False).returncode == 1
    assert page_data(half) == before


@pytest.mark.slow
def test_ci_writes_the_others_and_the_error(half: Workspace) -> None:
    run = half.npumake("ci", "--junit", "j.xml", "--summary", "s.md", check=False)
    assert run.returncode == 2
    suites = ElementTree.parse(half.root / "j.xml").getroot()
    kinds = {case.get("classname"): set() for case in suites.iter("testcase")}
    for case in suites.iter("testcase"):
        kinds[case.get("classname")] |= {child.tag for child in case}
    assert kinds["digits.rdk-x5"] == {"error", "skipped"}
    assert kinds["digits.ara240"] == {"system-out"}
    assert "ara240" in (half.root / "s.md").read_text()


@pytest.mark.slow
def test_two_targets_with_one_error_show_it_once(tmp_path: Path) -> None:
    workspace = target_list(lay_out(tmp_path / "w"), ("rdk-x5", "ara240"))
    (workspace.project / "quantization.yaml").write_text("cpu: [nothing]\n")
    run = workspace.npumake("build", check=False)
    assert run.stdout.count(MESSAGE) == 1
    assert made(run, "failed") == {"rdk-x5/recipe", "ara240/recipe"}
    assert "the error of digits:rdk-x5/recipe" in run.stdout


@pytest.mark.slow
def test_no_continue_stops_at_the_first_error(tmp_path: Path) -> None:
    workspace = target_list(lay_out(tmp_path / "w"), ORDERS[0])
    run = workspace.doit("--no-continue", check=False)
    assert not [name for name in made(run, "made") if "ara240" in name]


@pytest.mark.slow
def test_a_notebook_builds_the_others_too(half: Workspace) -> None:
    for file in (half.project / "out").glob("*.ara240.*"):
        file.unlink()
    (half.project / "out" / "report.html").unlink()
    with pytest.raises(PipelineError, match=MESSAGE):
        npumake.build(half.project)
    assert (half.project / "out" / "compiled_check.ara240.json").exists()
    assert page_data(half)["refused"][0]["name"] == "digits:rdk-x5"


def test_a_node_that_joins_keeps_what_was_built() -> None:
    inputs = {"p:a": "p:a/findings", "p:b": "p:b/findings"}
    traced = ("p:samples", "p:a/compiled", "p:b/recipe", "p:b/compiled")
    report = Node("p:report", "report", (), "", None, None, "out/r", inputs, {}, None, (), {})
    refusals = {name: ("no", "yes") for name in ("p:b/findings", "p:b/compiled")}
    kept = without_refused(Node(**{**report.__dict__, "traced": traced}), refusals)
    assert kept.inputs == {"p:a": "p:a/findings"}
    assert kept.traced == ("p:samples", "p:a/compiled", "p:b/recipe")
    assert kept.params == {"refused": {"p:b": ["no", "yes"]}}
    assert without_refused(report, None) is report
