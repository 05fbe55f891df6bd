"""npumake report: where the pages are, and the page of a workspace with its earlier builds."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from npumake.cache.local import LocalStore
from npumake.cache.store import Record
from npumake.make.history import history
from workspaces import Workspace

METHOD = "calibration.method"


def cells(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [re.findall(r"<td[^>]*><span>(.*?)</span></td>", row) for row in rows]


def changed(workspace: Workspace, before: str, after: str) -> None:
    file = workspace.project / "project.yaml"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))


def test_a_page_is_named_with_its_state(reported: Workspace) -> None:
    page = Path("projects", "digits", "out", "report.html")
    assert reported.npumake("report").stdout == f"{page}: current\n"
    changed(reported, "method: max", "method: max_percentile")
    found = reported.npumake("report", "digits").stdout
    assert found == f"{page}: would run; npumake build digits makes it\n"


def test_a_project_without_a_page_is_told_how_it_gets_one(built: Workspace) -> None:
    run = built.npumake("report", "digits", check=False)
    assert run.returncode == 2
    assert "no page of digits" in run.stderr
    changed(built, "calibration:", "report: {samples: 4}\ncalibration:")
    assert "would run" in built.npumake("report", "digits").stdout


def test_the_page_of_a_workspace_has_every_build_and_leads_to_the_reports(
    reported: Workspace,
) -> None:
    told = reported.npumake("report", "--workspace", "--output", "public").stdout
    assert told.startswith(f"{Path('public', 'index.html')}: 4 builds, ")
    page = (reported.root / "public" / "index.html").read_text()
    builds = {tuple(row[:2]) for row in cells(page) if row}
    assert any("digits@kl" in name and target == "ara240" for name, target in builds)
    links = {unquote(link.partition("#")[0]) for link in re.findall(r'href="([^#"]+)', page)}
    assert links
    assert all((reported.root / "public" / link).is_file() for link in links)


@pytest.mark.slow
def test_earlier_builds_are_told_with_what_was_other(built: Workspace) -> None:
    changed(built, "method: max ", "method: max_percentile ")
    built.doit()
    built.npumake("report", "--workspace")
    page = (built.root / "out" / "report" / "index.html").read_text()
    past = [row for row in cells(page) if row and row[-1] == "calibration.method: max"]
    assert sorted(row[0] for row in past) == ["digits:ara240", "digits:rdk-x5"]
    assert page.count("<figure") == 1


@pytest.mark.slow
def test_a_renamed_project_keeps_its_earlier_builds(built: Workspace) -> None:
    changed(built, "method: max ", "method: max_percentile ")
    built.doit()
    built.project.rename(built.root / "projects" / "other")
    assert built.npumake("report", "--workspace").stdout.endswith("2 builds, 2 earlier ones\n")


@pytest.mark.slow
def test_a_damaged_artifact_of_the_store_is_left_out(built: Workspace) -> None:
    changed(built, "method: max ", "method: max_percentile ")
    built.doit()
    for blob in (built.root / "cache" / "blobs").glob("*/*"):
        blob.chmod(0o644)
        blob.write_bytes(b"damaged")
    assert built.npumake("report", "--workspace").stdout.endswith("2 builds, 0 earlier ones\n")


@pytest.mark.slow
def test_an_artifact_of_another_version_is_left_out_with_a_note(built: Workspace) -> None:
    """One that this version cannot read, in the store or in `out/`, under its right digest."""
    changed(built, "method: max ", "method: max_percentile ")
    built.doit()
    store = LocalStore(built.root / "cache")
    past = next(each for each in history(store).builds if each.settings[METHOD] == "max")
    other = built.root / "other.json"
    other.write_text('{"rows": "in another format"}')
    result = past.results["comparison"]
    digest = store.put(other)
    store.remember(result.key, Record(result.document, digest, other.stat().st_size))
    told = built.npumake("report", "--workspace").stdout.splitlines()
    assert len(told) == 2
    assert told[0].endswith("1 earlier builds of another version are not shown")
    assert told[1].endswith("2 builds, 1 earlier ones")
    (built.project / "out" / "comparison.ara240.json").write_text("{}")
    assert built.npumake("report", "--workspace").returncode == 0


@pytest.mark.slow
def test_to_be_shown_is_no_use_of_an_artifact(built: Workspace) -> None:
    changed(built, "method: max ", "method: max_percentile ")
    built.doit()
    blobs = [*(built.root / "cache" / "blobs").glob("*/*")]
    before = [blob.stat().st_mtime_ns for blob in blobs]
    built.npumake("report", "--workspace")
    assert [blob.stat().st_mtime_ns for blob in blobs] == before


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--workspace", "digits"), "--workspace compares all projects"),
        (("--workspace", "--output", "dodo.py"), "this folder cannot be made"),
        (("none",), "no project `none`"),
    ],
)
def test_what_cannot_be_is_an_error(
    arguments: tuple[str, ...], what: str, built: Workspace
) -> None:
    run = built.npumake("report", *arguments, check=False)
    assert run.returncode == 2
    assert f"error: {what}" in run.stderr
    assert "Traceback" not in run.stderr
