"""A compiler in a process of its own: a crash of it is an error here, and no more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from npumake.errors import StageError
from npumake.extras import install_line
from npumake.lifetime.parent import run_supervised

TOLD = 12  # lines of what a compiler says when it fails: its errors, or the last
WIDEST = 300  # letters of such a line
FRAME = re.compile(r"#\d+ 0x[0-9a-f]+ ((?:mlir|llvm)::(?!sys::)[\w:]+)")
_LIMIT: ContextVar[float | None] = ContextVar("limit", default=None)


class CompilerError(StageError):
    """A compiler that is here failed."""


class SlowError(StageError):
    """A compiler was ended because it took longer than `limited` allows."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What `run_python` starts inside ends, with all its children, after so many seconds."""
    token = _LIMIT.set(seconds)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def run_python(arguments: Sequence[str], folder: Path, needs: Sequence[str]) -> str:
    """What `python ...` says, run in `folder`. Raises StageError where a distribution it `needs`
    is not installed, CompilerError where it fails, SlowError beyond a limit."""
    for distribution in needs:
        require(distribution)
    status, said, complaints = finished([sys.executable, *arguments], folder)
    refuse_failure(needs[0], status, (said + complaints).splitlines())
    return said


def finished(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Its exit status, and what it says. Raises SlowError beyond a limit. It ends, with all that it
    starts, when this process does."""
    limit, environment = _LIMIT.get(), {**os.environ, "TMPDIR": str(folder)}
    try:
        done = run_supervised(command, limit, folder, environment)
    except subprocess.TimeoutExpired as error:
        raise SlowError(f"a compiler takes more than {limit:.0f} s") from error
    said, complaints = (data.decode("utf-8", "replace") for data in (done.stdout, done.stderr))
    return done.returncode, said, complaints


def refuse_failure(
    name: str,
    status: int,
    lines: Iterable[str],
    products: Sequence[Path] = (),
    where: str | None = None,
) -> None:
    """Raises CompilerError, with what the compiler called `name` said, where its exit status is not
    0 or one of its products is not there."""
    said = [line for line in lines if line.strip()]
    errors = [line for line in said if "error:" in line]
    errors = errors or _raised(said) or _crashed(said) or said[-TOLD:]
    last = "\n".join(line[:WIDEST] for line in errors[:TOLD])
    if status:
        raise CompilerError(f"{name} fails with exit status {status}:\n{last}", where)
    for product in products:
        if not product.is_file():
            raise CompilerError(f"{name} succeeds and leaves no {product.name}:\n{last}", where)


def _raised(said: Sequence[str]) -> list[str]:
    """Of a script that ends with a traceback: the exception, and not the way to it."""
    begins = [at for at, line in enumerate(said) if line.startswith("Traceback (most recent call")]
    return [line for line in said[begins[-1] + 1 :] if line[:1] != " "] if begins else []


def _crashed(said: Sequence[str]) -> list[str]:
    """Of a stack dump of LLVM's: the innermost function of the compiler itself."""
    if not any(line.startswith("Stack dump") for line in said):
        return []
    frames = [match.group(1) for line in said if (match := FRAME.search(line))]
    return [f"it crashes in {frames[0]}" if frames else "it crashes"]


def require(distribution: str) -> str:
    """Its version. Raises StageError where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError as error:
        what = f"this target needs {distribution}, which is not installed"
        raise StageError(what, None, install_line(distribution)) from error
