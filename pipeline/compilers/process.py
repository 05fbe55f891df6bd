"""A compiler in a process of its own: a crash of it is an error here, and no more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.errors import StageError
from pipeline.lifetime.parent import run_supervised

TOLD = 12  # lines of what a compiler says when it fails: its errors, or the last
WIDEST = 300  # letters of such a line


def run_python(arguments: Sequence[str], folder: Path, needs: Sequence[str]) -> str:
    """What `python ...` says, run in `folder`. Raises StageError where a distribution it `needs`
    is not installed, or where it fails."""
    for distribution in needs:
        require(distribution)
    command, environment = [sys.executable, *arguments], {**os.environ, "TMPDIR": str(folder)}
    done = run_supervised(command, None, folder, environment)
    said, complaints = (data.decode("utf-8", "replace") for data in (done.stdout, done.stderr))
    refuse_failure(needs[0], done.returncode, (said + complaints).splitlines())
    return said


def refuse_failure(
    name: str,
    status: int,
    lines: Iterable[str],
    products: Sequence[Path] = (),
    where: str | None = None,
) -> None:
    """Raises StageError, with what the compiler called `name` said, where its exit status is not 0
    or one of its products is not there."""
    said = [line for line in lines if line.strip()]
    errors = [line for line in said if "error:" in line] or _raised(said) or said[-TOLD:]
    last = "\n".join(line[:WIDEST] for line in errors[:TOLD])
    if status:
        raise StageError(f"{name} fails with exit status {status}:\n{last}", where)
    for product in products:
        if not product.is_file():
            raise StageError(f"{name} succeeds and leaves no {product.name}:\n{last}", where)


def _raised(said: Sequence[str]) -> list[str]:
    """Of a script that ends with a traceback: the exception, and not the way to it."""
    begins = [at for at, line in enumerate(said) if line.startswith("Traceback (most recent call")]
    return [line for line in said[begins[-1] + 1 :] if line[:1] != " "] if begins else []


def require(distribution: str) -> str:
    """Its version. Raises StageError where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError as error:
        hint = "pip install 'npumake[compilers]'"
        raise StageError(f"this target needs {distribution}, which is not here", None, hint) from (
            error
        )
