"""A compiler in a process of its own: a crash of it is an error here, and no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.errors import StageError

TOLD = 12  # lines of what a compiler says when it fails: its errors, or the last
WIDEST = 300  # letters of such a line


def run_python(arguments: Sequence[str], folder: Path, needs: Sequence[str]) -> str:
    """What `python ...` says, run in `folder`. Raises StageError where a distribution it `needs`
    is not installed, or where it fails."""
    for distribution in needs:
        require(distribution)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error:" in line] or lines[-TOLD:]
        said = "\n".join(line[:WIDEST] for line in errors[:TOLD])
        raise StageError(f"{needs[0]} fails with exit status {done.returncode}:\n{said}")
    return done.stdout


def require(distribution: str) -> str:
    """Its version. Raises StageError where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError as error:
        hint = "pip install 'npumake[compilers]'"
        raise StageError(f"this target needs {distribution}, which is not here", None, hint) from (
            error
        )
