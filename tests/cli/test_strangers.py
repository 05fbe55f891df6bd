"""Files of the user's own that are called like ours do not take the place of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forks import run_python, user_environment
from workspaces import REPO, Workspace

MINE = "raise SystemExit('a file of the user has been imported')\n"
RUN = "from npumake.cli.main import main; raise SystemExit(main())"


def folder(place: Path, name: str) -> None:
    (place / name).mkdir()
    (place / name / "__init__.py").write_text(MINE)


def empty_folder(place: Path, name: str) -> None:
    (place / name).mkdir()


def module(place: Path, name: str) -> None:
    (place / f"{name}.py").write_text(MINE)


def file(place: Path, name: str) -> None:
    (place / name).write_text("ours\n")


KINDS = (folder, empty_folder, module, file)
BUNDLE = "projects/digits/out/digits.rdk-x5.hybrid"
QUANTIZED = "projects/digits/out/quantized.rdk-x5.onnx"
VERBS = {
    "bench": f"bench {BUNDLE} --frame_count 1",
    "build": "build digits",
    "check": "check projects/digits --target rdk-x5",
    "debug": "debug blame digits:rdk-x5",
    "diff": f"diff {BUNDLE} {BUNDLE}",
    "handover": "handover projects/digits --target rdk-x5 --out handed",
    "info": f"info {BUNDLE}",
    "list": "list",
    "new": "new another --model projects/digits/model.onnx",
    "pack": f"pack {BUNDLE} -o both.hybrid",
    "perf": f"perf {BUNDLE}",
    "run": f"run {BUNDLE} -i projects/digits/samples/0000.npy",
    "show": f"show {BUNDLE}",
    "verify": f"verify -q {QUANTIZED} -b {BUNDLE}",
    "why": "why",
}


def commanded(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """As the installed command runs: the current folder is nowhere on its path. The fork has
    imported nothing of ours."""
    environment = user_environment()
    return run_python("-P", *command, folder=place, environment=environment, loaded="libraries")


def lay_about(workspace: Workspace, kind: Callable[[Path, str], None], *names: str) -> None:
    for place in (workspace.root, workspace.project):
        for name in names:
            kind(place, name)


@pytest.mark.slow
def test_no_verb_imports_them(built: Workspace) -> None:
    lay_about(built, folder, "pipeline", "npumake")
    for verb, command in VERBS.items():
        done = commanded(built.root, "-c", RUN, *command.split())
        assert (verb, done.returncode, done.stderr) == (verb, 0, "")
        assert "has been imported" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", [("-m", "doit"), ("-P", "-m", "doit")], ids=["module", "script"])
def test_doit_imports_ours(
    kind: Callable[[Path, str], None], way: tuple[str, ...], built: Workspace
) -> None:
    """A module of our own name beside a dodo.py is found first; a plain folder is not."""
    lay_about(built, kind, "pipeline")
    if kind in (empty_folder, file):
        lay_about(built, kind, "npumake")
    for place in (built.root, built.project):
        done = subprocess.run(
            [sys.executable, *way, "digits"] if place == built.root else [sys.executable, *way],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(REPO / "pipeline")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "has been imported" not in done.stdout + done.stderr
        assert "current" in done.stdout
