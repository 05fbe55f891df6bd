"""Runs a compiler in a separate process: its crash is an error here."""

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

MAX_LINES = 12  # of a failing compiler's output: its errors, or the last lines
MAX_LINE_LETTERS = 300  # of such a line
FRAME = re.compile(r"#\d+ 0x[0-9a-f]+ ((?:mlir|llvm)::(?!sys::)[\w:]+)")
_TIME_LIMIT_S: ContextVar[float | None] = ContextVar("limit", default=None)


class CompilerError(StageError):
    """An installed compiler failed."""


class SlowError(StageError):
    """A compiler exceeded the limit of `limited`."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Inside, `run_python` stops a process and all its children after this many seconds."""
    token = _TIME_LIMIT_S.set(seconds)
    try:
        yield
    finally:
        _TIME_LIMIT_S.reset(token)


def run_python(arguments: Sequence[str], folder: Path, needs: Sequence[str]) -> str:
    """The output of `python ...` in `folder`. Raises StageError if one of the distributions
    `needs` is not installed, CompilerError if it fails, SlowError beyond a limit."""
    for distribution in needs:
        require(distribution)
    status, stdout, stderr = finished([sys.executable, *arguments], folder)
    refuse_failure(needs[0], status, (stdout + stderr).splitlines())
    return stdout


def finished(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command. It ends with its children when this process
    ends. Raises SlowError beyond a limit."""
    limit, environment = _TIME_LIMIT_S.get(), {**os.environ, "TMPDIR": str(folder)}
    try:
        completed = run_supervised(command, limit, folder, environment)
    except subprocess.TimeoutExpired as error:
        raise SlowError(f"a compiler takes more than {limit:.0f} s") from error
    stdout, stderr = (
        data.decode("utf-8", "replace") for data in (completed.stdout, completed.stderr)
    )
    return completed.returncode, stdout, stderr


def refuse_failure(
    name: str,
    status: int,
    lines: Iterable[str],
    products: Sequence[Path] = (),
    where: str | None = None,
) -> None:
    """Raises CompilerError, with the compiler's errors, for a non-zero exit status or a missing
    product."""
    text = [line for line in lines if line.strip()]
    errors = [line for line in text if "error:" in line]
    errors = errors or _raised(text) or _crashed(text) or text[-MAX_LINES:]
    last = "\n".join(line[:MAX_LINE_LETTERS] for line in errors[:MAX_LINES])
    if status:
        raise CompilerError(f"{name} fails with exit status {status}:\n{last}", where)
    for product in products:
        if not product.is_file():
            raise CompilerError(f"{name} succeeds and leaves no {product.name}:\n{last}", where)


def _raised(lines: Sequence[str]) -> list[str]:
    """The exception of a script that ends with a traceback, without the traceback."""
    begins = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent call")]
    return [line for line in lines[begins[-1] + 1 :] if line[:1] != " "] if begins else []


def _crashed(lines: Sequence[str]) -> list[str]:
    """From an LLVM stack dump, the innermost function of the compiler itself."""
    if not any(line.startswith("Stack dump") for line in lines):
        return []
    frames = [match.group(1) for line in lines if (match := FRAME.search(line))]
    return [f"it crashes in {frames[0]}" if frames else "it crashes"]


def require(distribution: str) -> str:
    """The version of the distribution. Raises StageError if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError as error:
        message = f"this target needs {distribution}, which is not installed"
        raise StageError(message, None, install_line(distribution)) from error
