"""The wheel holds all that npumake needs at run time, and works where nothing else is installed."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from release.distributions import (
    base_environment,
    build_distributions,
    copied_sources,
    tool_environment,
)
from workspaces import REPO

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMIT = "0123456789abcdef" * 2

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    sources = copied_sources(tmp_path_factory.mktemp("release") / "sources")
    (sources / "pipeline/npumake/commit.txt").write_text(f"{COMMIT}\n")
    return build_distributions(sources)


@pytest.fixture(scope="module")
def commands(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_environment(tmp_path_factory.mktemp("empty") / "env", distributions[0])


def package_files() -> set[str]:
    root = REPO / "pipeline"
    files = (file for file in (root / "npumake").rglob("*") if file.is_file())
    return {
        file.relative_to(root).as_posix()
        for file in files
        if "__pycache__" not in file.parts and file.name != "commit.txt"
    }


def test_the_wheel_holds_every_file_of_the_package(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("npumake/")}
        others = {name.partition("/")[0] for name in wheel.namelist()} - {"npumake"}
    assert names == package_files() | {"npumake/commit.txt"}
    assert others == {f"npumake-{PROJECT['version']}.dist-info"}


def test_the_sdist_holds_the_package_and_its_license(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {f"pipeline/{name}" for name in package_files()} <= names
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names


def test_the_metadata_is_that_of_the_project(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert set(metadata.get_all("Provides-Extra", ())) == set(PROJECT["optional-dependencies"])


def test_the_installed_wheel_tells_version_commit_and_extras(commands: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [commands / "npumake", "--version"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == f"npumake {PROJECT['version']} (commit {COMMIT[:12]})"
    assert second == "extras: none"


def test_the_installed_wheel_makes_and_builds_a_project(commands: Path) -> None:
    model = REPO / "projects/digits/model.onnx"
    done = subprocess.run(
        [REPO / ".ci/try-installed", commands, model],
        env=tool_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " made in " in done.stdout  # by `npumake build`
    assert " 0 made" not in done.stdout
