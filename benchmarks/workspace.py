"""Shared parts of the benchmarks: copies of a project, doit as the reference, paired timings."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

REPO = Path(__file__).parents[1]
PROJECT = REPO / "projects" / "digits"
# Tasks as cheap as doit has them: what remains is doit itself.
BARE = """
def nothing():
    pass

def task_trivial():
    for number in range({tasks}):
        yield {{"name": str(number), "actions": [nothing], "uptodate": [{current}]}}
"""


def lay_out(root: Path, copies: int) -> None:
    """A workspace of `copies` projects, and nothing built."""
    shutil.copy(REPO / "dodo.py", root)
    ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
    for number in range(copies):
        shutil.copytree(PROJECT, root / "projects" / f"digits{number:03}", ignore=ignored)


def bare_doit(root: Path, tasks: int, current: bool) -> None:
    root.mkdir()
    (root / "dodo.py").write_text(BARE.format(tasks=tasks, current=current))


def doit(root: Path) -> str:
    """Run doit in `root`, files trusted by signature as on a desk; what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    run = subprocess.run(
        [sys.executable, "-m", "doit"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def paired(runs: int, commands: Sequence[Callable[[], object]]) -> list[float]:
    """The median seconds of each command, run in turn: a drift of the machine hits all alike."""
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(runs):
        for command, taken in zip(commands, seconds, strict=True):
            start = time.perf_counter()
            command()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]
