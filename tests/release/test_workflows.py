"""The workflows of .github/: what they may do, and the steps of a release without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.distributions import base_environment, copied_sources, tool_environment
from workspaces import REPO

WORKFLOWS = sorted((REPO / ".github/workflows").glob("*.yml"))
# Steps that install something or publish it.
NETWORK = {
    "install the tools",
    "install the wheel into an empty environment",
    "create the release",
}
WORD = re.compile(r"\.ci/[\w-]+|docs/\w+\.py")


def document(name: str) -> dict[str, Any]:
    return yaml.safe_load((REPO / ".github/workflows" / name).read_text(encoding="utf-8"))


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in document(file.name)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_may_only_read_unless_a_job_says_otherwise(file: Path) -> None:
    workflow = document(file.name)
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())
    assert "secrets." not in file.read_text(encoding="utf-8")
    for step in steps(file):
        assert "run" in step or re.fullmatch(r"[\w/-]+@(v\d+|release/v\d+)", step["uses"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_program_of_the_repository_that_a_step_runs_exists(file: Path) -> None:
    for step in steps(file):
        for name in WORD.findall(step.get("run", "")):
            assert (REPO / name).is_file(), name


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_expression_is_pasted_into_a_script(file: Path) -> None:
    assert [step["run"] for step in steps(file) if "${{" in step.get("run", "")] == []


def test_a_release_is_published_without_a_token_and_after_its_build() -> None:
    jobs = document("release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == [
        "publish"
    ]


@pytest.mark.slow
def test_the_build_of_a_release_runs_here(tmp_path: Path) -> None:
    """Every `run` of the job as it stands; what needs an index is linked from this environment."""
    pytest.importorskip("twine", reason="of npumake[dev]")
    sources = copied_sources(tmp_path / "sources")
    commit = commit_all(sources)
    version = re.search(r'^version = "(.*)"$', (REPO / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    variables = {"GITHUB_SHA": commit, "GITHUB_REF_NAME": f"v{version[1]}"}
    for step in document("release.yml")["jobs"]["build"]["steps"]:
        if step.get("name") == "install the wheel into an empty environment":
            (wheel,) = (sources / "dist").glob("*.whl")
            base_environment(sources / "empty", wheel)
        if "run" in step and step["name"] not in NETWORK:
            done = shell(step["run"], sources, variables)
            assert done.returncode == 0, step["name"] + done.stdout + done.stderr
    assert (sources / "notes.md").read_text().startswith(f"## [{version[1]}] - ")
    assert len([*(sources / "dist").iterdir()]) == 2
    wrong = {**variables, "GITHUB_REF_NAME": "v9.9.9"}
    (compare,) = (s for s in steps(Path("release.yml")) if "compare" in s.get("name", ""))
    assert shell(compare["run"], sources, wrong).returncode != 0


def shell(script: str, root: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-eo", "pipefail", "-c", script]
    environment = tool_environment(**variables)
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def commit_all(root: Path) -> str:
    if shutil.which("git") is None:
        pytest.skip("no git here")
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "release"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    command = [*git, "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
