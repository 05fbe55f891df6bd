"""The wheel and the sdist of this tree, and an environment with nothing but the base."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from workspaces import REPO

# What a release reads of a checkout.
FOLDERS = (".ci", ".github", "pipeline", "projects/digits")
FILES = (".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")
BUILT = ("out", ".doit.db*", "__pycache__", "*.egg-info", "commit.txt")


def copied_sources(root: Path) -> Path:
    """A checkout without anything that was built there."""
    for name in FOLDERS:
        shutil.copytree(REPO / name, root / name, ignore=shutil.ignore_patterns(*BUILT))
    for name in FILES:
        shutil.copy(REPO / name, root / name)
    return root


def tool_environment(**variables: str) -> dict[str, str]:
    """The environment of a shell in which `python` is this one."""
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "COLUMNS")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**clean, "PATH": path, **variables}


def build_distributions(sources: Path) -> tuple[Path, Path]:
    """(wheel, sdist); the wheel is built from the sdist, not from the sources."""
    command = [sys.executable, "-m", "build", "--no-isolation"]
    for module in ("build", "setuptools"):
        if find_spec(module) is None:  # not imported: setuptools replaces a loaded distutils
            pytest.skip(f"{module} of npumake[dev] is not installed")
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (sources / "dist").glob("*.whl")
    (sdist,) = (sources / "dist").glob("*.tar.gz")
    return wheel, sdist


def base_environment(folder: Path, wheel: Path) -> Path:
    """Commands of an environment with the wheel and the distributions that its metadata names.

    They are linked from this environment: no index is asked, and nothing else can be imported.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (information,) = packages.glob("npumake-*.dist-info")
    for name in closure(information / "METADATA"):
        _link(name, packages)
    for installed in (Distribution.at(information), distribution("doit")):
        _write_commands(installed, folder / "bin")
    return folder / "bin"


def closure(metadata: Path) -> set[str]:
    """Distributions that the base installs, by the metadata of the wheel and of each of them."""
    prefix = "Requires-Dist: "
    lines = metadata.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    waiting = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
    names: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_needed and requirement.name not in names:
            names.add(requirement.name)
            waiting += _requirements(requirement.name)
    return names


def _requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        pytest.skip(f"installed from another pyproject.toml: {name} is absent")


def _link(name: str, packages: Path) -> None:
    files = distribution(name).files or ()
    for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        if not (packages / top).exists():
            (packages / top).symlink_to(distribution(name).locate_file(top))


def _write_commands(installed: Distribution, folder: Path) -> None:
    for entry in installed.entry_points.select(group="console_scripts"):
        call = f"from {entry.module} import {entry.attr}\nraise SystemExit({entry.attr}())\n"
        (folder / entry.name).write_text(f"#!{folder / 'python'}\n{call}")
        (folder / entry.name).chmod(0o755)
