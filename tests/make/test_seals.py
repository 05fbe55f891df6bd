"""Nothing that a build remembers is believed where its seal is wrong; a wrong seal is a miss."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from npumake.cache.sealed import sealed, unsealed
from workspaces import Workspace, made

REMEMBERED = {
    "plan": "projects/digits/out/.npumake/plan.json",
    "stamps": "projects/digits/out/.npumake/*.json",
    "records": "cache/records/*/*.json",
    "closures": "cache/closures/*.json",
    "sources": "cache/sources.json",
    "stages": "cache/stages.json",
    "files": "cache/files.json",
}


def artifacts(workspace: Workspace) -> dict[str, bytes]:
    files = sorted((workspace.project / "out").glob("*.*"))
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def test_a_seal_holds_for_one_content_and_one_identity() -> None:
    data = sealed("a", {"x": [1, 2.5, None]})
    assert json.loads(data)["content"] == {"x": [1, 2.5, None]}
    assert unsealed("a", data) == {"x": [1, 2.5, None]}
    assert unsealed("b", data) is None
    for index in range(len(data)):
        damaged = data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
        assert unsealed("a", damaged) is None
    assert unsealed("a", b"") is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", REMEMBERED)
def test_a_flipped_bit_in_what_is_remembered_changes_no_artifact(
    built: Workspace, kind: str
) -> None:
    right = artifacts(built)
    rng = random.Random(kind)
    for file in built.root.glob(REMEMBERED[kind]):
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.chmod(0o644)
        file.write_bytes(data)
    for file in built.project.glob("out/*.hybrid"):
        file.unlink()
    run = built.npumake("build")
    assert "Traceback" not in run.stdout + run.stderr
    assert artifacts(built) == right


@pytest.mark.slow
def test_an_edited_plan_is_planned_anew(built: Workspace) -> None:
    right, plan = artifacts(built), built.project / "out/.npumake/plan.json"
    text = plan.read_text()
    for old, new in (
        ('"half_even"', '"half_up"'),
        ('"path":"out/', '"path":"../../../../'),
        ('"name":"digits:', '"name":"digit:'),
    ):
        assert old in text
        plan.write_text(text.replace(old, new))
        run = built.npumake("build", check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert made(run, "made") == set()
        assert artifacts(built) == right
        assert plan.read_text() == text


@pytest.mark.slow
def test_a_record_that_names_another_blob_is_no_record(built: Workspace) -> None:
    right = artifacts(built)
    records = [Path(p) for p in built.root.glob("cache/records/*/*.json")]
    documents = [json.loads(record.read_bytes()) for record in records]
    for record, other in zip(records, [*documents[1:], documents[0]], strict=True):
        edited = {
            **json.loads(record.read_bytes()),
            "digest": other["digest"],
            "size": other["size"],
        }
        record.chmod(0o644)
        record.write_text(json.dumps(edited))
    shutil.rmtree(built.project / "out")
    run = built.npumake("build")
    assert len(made(run, "made")) == len(records)
    assert artifacts(built) == right


@pytest.mark.slow
def test_why_says_what_was_damaged(built: Workspace) -> None:
    node, stamp = "digits:original_float", built.project / "out/.npumake/original_float.json"
    stamp.write_bytes(stamp.read_bytes()[:-2])
    assert "seal of its stamp is wrong" in built.npumake("why", node).stdout
    for record in built.root.glob("cache/records/*/*.json"):
        record.write_bytes(record.read_bytes().replace(b'"seal":"', b'"seal":"0'))
    assert "was damaged and is quarantined" in built.npumake("why", node).stdout


@pytest.mark.slow
def test_a_copied_and_a_renamed_project_build(built: Workspace) -> None:
    shutil.copytree(built.project, built.project.parent / "copy")
    run = built.npumake("build")
    assert made(run, "made") == set()
    built.project.rename(built.project.parent / "renamed")
    run = built.npumake("build")
    assert "Traceback" not in run.stdout + run.stderr
    assert (built.project.parent / "renamed/out/renamed.rdk-x5.hybrid").is_file()
