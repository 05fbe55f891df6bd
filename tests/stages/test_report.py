"""report: one page per project, never stale, joined from every target and variant."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npumake.cli.projects import selected
from workspaces import REPO, Workspace, made

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
BUILDS = [f"digits{variant}:{chip}" for variant in ("", "@kl") for chip in ("ara240", "rdk-x5")]


def told(workspace: Workspace) -> dict:  # type: ignore[type-arg]
    """The data of the page."""
    page = (workspace.project / "out" / "report.html").read_text(encoding="utf-8")
    found = DATA.search(page)
    assert found is not None
    return json.loads(found.group(1))


def edit(workspace: Workspace, old: str, new: str) -> None:
    path = workspace.project / "project.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_it_joins_every_target_and_variant(reported_once: Workspace) -> None:
    assert [each["name"] for each in told(reported_once)["builds"]] == BUILDS


@pytest.mark.slow
def test_a_second_build_makes_nothing(reported: Workspace) -> None:
    run = reported.doit()
    assert made(run, "made") | made(run, "recalled") == set()


def test_provenance_is_that_of_the_stamps(reported_once: Workspace) -> None:
    (build,) = selected(reported_once.root, ["digits"], paranoid=False)
    rows = {row["node"]: row for row in told(reported_once)["provenance"]}
    for node in build.plan.nodes:
        if node.stage in ("gates", "report") or node.name not in rows:
            continue
        stamp = build.stamp(node)
        assert stamp is not None
        assert rows[node.name]["digest"] == stamp.digest
        assert rows[node.name]["bytes"] == build.artifact(node).stat().st_size
    assert {f"{name}/compiled" for name in BUILDS} < rows.keys()


@pytest.mark.slow
def test_one_target_changed_makes_its_findings_and_the_page_anew(reported: Workspace) -> None:
    edit(reported, "- ara240", "- ara240: {calibration: {method: mse}}\n  #")
    again = made(reported.doit(), "made")
    assert "report" in again
    assert {name for name in again if name.endswith("findings")} == {"ara240/findings"}
    methods = {each["name"]: each["recipe"]["method"] for each in told(reported)["builds"]}
    assert methods == {
        **dict.fromkeys(("digits:ara240", "digits@kl:ara240"), "mse"),  # a target's word is last
        "digits:rdk-x5": "max",
        "digits@kl:rdk-x5": "kl",
    }


@pytest.mark.slow
def test_the_labels_of_the_evaluation_name_the_classes(reported: Workspace) -> None:
    digits = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    files = sorted((reported.project / "samples").glob("*.npy"))[:12]
    rows = [f"samples/{file.name},{digits[n % 10]}" for n, file in enumerate(files)]
    (reported.project / "labels.csv").write_text("\n".join(["file,label", *rows]))
    (reported.project / "evaluation.yaml").write_text(
        "dataset:\n  files: samples/000*.npy\n  labels: labels.csv\n"
        f"  classes: [{', '.join(digits)}]\n"
    )
    reported.doit()
    for build in told(reported)["builds"]:
        for sample in build["samples"]:
            numbers, names = zip(
                *(name.split() for name, _ in sample["float"]["best"]), strict=True
            )
            assert [digits[int(number)] for number in numbers] == list(names)


@pytest.mark.slow
def test_a_key_that_changed_is_told_though_no_byte_of_it_did(reported: Workspace) -> None:
    before = told(reported)
    edit(reported, "method: max ", "percentile: 0.5\n  method: max ")
    assert "report" in made(reported.doit(), "made")
    was, now = (
        next(row for row in page["provenance"] if row["node"] == "digits:rdk-x5/recipe")
        for page in (before, told(reported))
    )
    assert was["digest"] == now["digest"]
    assert was["key"] != now["key"]


def test_a_project_that_asks_for_none_has_none(built_once: Workspace) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    assert not {node.stage for node in build.plan.nodes} & {"findings", "report"}


@pytest.mark.slow
def test_a_gate_that_is_not_met_is_told_in_the_page(reported: Workspace) -> None:
    (reported.project / "gates.yaml").write_text("- {cosine: 0.9999}\n")
    run = reported.npumake("build", check=False)
    assert run.returncode == 6
    gates = [gate for each in told(reported)["builds"] for gate in each["gates"]]
    assert len(gates) == len(BUILDS)
    assert not any(gate["met"] for gate in gates)


def test_samples_show_what_both_models_see(reported_once: Workspace) -> None:
    page = told(reported_once)
    pictures = page["pictures"]
    assert len(pictures) == 3
    for each in page["builds"]:
        assert len(each["samples"]) == 3
        for sample in each["samples"]:
            assert pictures[sample["picture"]].startswith("data:image/png;base64,")
            assert sample["float"]["best"][0][0] == sample["quantized"]["best"][0][0]
            assert sample["cosines"]["logits"] > 0.995


@pytest.mark.slow
def test_the_page_is_made_again_when_its_own_script_changes(
    reported: Workspace, tmp_path: Path
) -> None:
    package = tmp_path / "code" / "npumake"
    shutil.copytree(
        REPO / "pipeline" / "npumake", package, ignore=shutil.ignore_patterns("__pycache__")
    )

    def built() -> set[str]:
        run = subprocess.run(
            [sys.executable, "-m", "doit"],
            cwd=reported.root,
            env={"PYTHONPATH": str(package.parent), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return made(run, "made")

    assert built() == set()
    with (package / "report" / "page.js").open("a") as script:
        script.write("// another\n")
    assert "report" in built()
