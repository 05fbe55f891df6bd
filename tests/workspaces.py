"""A workspace with one of the projects, digits by default, where doit is run as a user runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import pytest

from forks import run_python, user_environment
from npumake import digest
from npumake.make.declarations import stages
from npumake.make.memory import BuildMemory

T = TypeVar("T")
REPO = Path(__file__).parents[1]


def shared_data() -> Path:
    """The real models and images: beside the repository, not in it, or where NPUMAKE_SHARED says.

    A test that needs them skips, visibly, where the folder does not exist.
    """
    return Path(os.environ.get("NPUMAKE_SHARED", REPO.parent / "shared")) / "data"


def few(cases: Iterable[T], wanted: Callable[[T], object]) -> list[T]:
    """Of heavy cases that are alike those CI takes the time for; by NPUMAKE_EVERY=1 all."""
    return [case for case in cases if os.environ.get("NPUMAKE_EVERY") or wanted(case)]


# A heavy test that is like another one, for which CI takes no time.
every_only = pytest.mark.skipif(
    not os.environ.get("NPUMAKE_EVERY"), reason="NPUMAKE_EVERY=1 runs it"
)


@dataclass(frozen=True)
class Workspace:
    root: Path
    name: str = "digits"

    @property
    def project(self) -> Path:
        return self.root / "projects" / self.name

    def doit(
        self, *arguments: str, environment: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return self._run("doit", arguments, environment or {}, check)

    def npumake(
        self, *arguments: str, environment: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return self._run("npumake.cli.main", arguments, environment or {}, check)

    def _run(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], check: bool
    ) -> subprocess.CompletedProcess[str]:
        """As a user would from here."""
        variables = {**user_environment(), **environment}
        run = run_python("-m", module, *arguments, folder=self.root, environment=variables)
        if check:
            run.check_returncode()
        return run

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file in out/ by name; hidden ones too, folders not."""
        out = self.project / "out"
        found = sorted(path for path in out.iterdir() if path.is_file()) if out.is_dir() else []
        return {path.name: digest.of_file(path) for path in found}


def made(run: subprocess.CompletedProcess[str], how: str) -> set[str]:
    """The nodes a run reported as `made` or `recalled`, without the project's name:
    `statistics`, `rdk-x5/calibrated`, `@p999:rdk-x5/calibrated`."""
    lines = [line.split() for line in run.stdout.splitlines()]
    names = [words[1] for words in lines if words[:1] == [how]]
    assert len(names) == len(set(names))
    return {re.sub("^[^:@]+:?", "", name) for name in names}


@cache
def _memos() -> Mapping[str, bytes]:
    with TemporaryDirectory() as folder:
        memory = BuildMemory(Path(folder))
        for stage in stages(memory).values():
            memory.code.closure(*stage.modules)
        names = ("files.json", "sources.json", "stages.json")
        memory.code.package_digest  # noqa: B018  # reads all other files of the package
        memory.save()
        return {name: Path(folder, name).read_bytes() for name in names}


def remember_code(folder: Path) -> None:
    """What another build left in `cache/` there of our own code, by content: no artifact of it.

    Reading and parsing the package takes half of the first build of a small project.
    """
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    for name, data in _memos().items():
        (folder / "cache" / name).write_bytes(data)


def lay_out_none(root: Path, name: str = "digits") -> Workspace:
    """A workspace with no project, which is to be of that name."""
    (root / "projects").mkdir(parents=True)
    shutil.copy(REPO / "dodo.py", root)
    remember_code(root)
    return Workspace(root, name)


def lay_out(root: Path, name: str = "digits") -> Workspace:
    """The project of that name in a workspace where nothing is built."""
    workspace = lay_out_none(root, name)
    ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
    shutil.copytree(REPO / "projects" / name, workspace.project, ignore=ignored)
    return workspace


def copied(workspace: Workspace, root: Path) -> Workspace:
    """Another place, the same content: what is built there is current."""
    shutil.copytree(workspace.root, root, symlinks=True)
    return Workspace(root, workspace.name)


def add_evaluation(workspace: Workspace, most: int = 120) -> None:
    """An evaluation of all four artifacts on so many held-out digits, and gates that are met."""
    images = np.load(workspace.project / "test_images.npy")[:most]
    labels = np.load(workspace.project / "test_labels.npy")[:most]
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        folder = workspace.project / "val" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{number:04}.npy", image)
    workspace.project.joinpath("evaluation.yaml").write_text(
        "dataset: {files: val/*/*.npy}\nartifacts: [float, calibrated, quantized, compiled]\n"
    )
    workspace.project.joinpath("gates.yaml").write_text(
        "- {metric: top1, max_drop: 5}\n- {cosine: 0.99}\n- {max_cpu_nodes: 0}\n"
    )


def add_report(workspace: Workspace) -> None:
    """A report of two variants with an evaluation of the float and the quantized model."""
    add_evaluation(workspace, 20)
    write = workspace.project.joinpath
    write("evaluation.yaml").write_text(
        "dataset: {files: val/*/*.npy}\nartifacts: [float, quantized]\n"
    )
    write("report.yaml").write_text("samples: 3\n")
    write("variants.yaml").write_text("kl: {calibration: {method: kl}}\n")
