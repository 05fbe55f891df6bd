"""Formats and prints errors; the only place that does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from traceback import format_exception
from types import TracebackType

from npumake.cli.terminal import printable
from npumake.digest import Json
from npumake.errors import PipelineError, Place

BUG = "this is a bug in npumake, not in your project: please report it with the lines above"

Words = Callable[[str], str]
_words: ContextVar[Words | None] = ContextVar("words", default=None)


@contextmanager
def speaking(words: Words) -> Iterator[None]:
    """Errors inside the block use a vendor's words."""
    token = _words.set(words)
    try:
        yield
    finally:
        _words.reset(token)


def error_text(error: PipelineError) -> str:
    """The error as text: what, where with the line and a caret, hint.

    error: unknown key `quantised`
      --> projects/mobilenet/project.yaml:3:1
    3 | quantised:
      | ^
    hint: did you mean `quantized`?
    """
    words = _words.get() or str
    lines = [f"error: {printable(words(error.what))}"]
    if error.where:
        lines.append(f"  --> {printable(str(error.where), allowed='')}")
    if isinstance(error.where, Place) and error.where.line:
        lines += _excerpt(error.where)
    if error.hint:
        lines.append(f"hint: {printable(words(error.hint))}")
    return "\n".join(lines)


def error_document(error: PipelineError) -> Json:
    """The error for machines."""
    fields = {"what": error.what, "where": str(error.where or ""), "hint": error.hint}
    return {**fields, "exit_code": error.exit_code}


def bug_text(traceback: str) -> str:
    """The traceback of a bug, with a request to report it."""
    return f"{printable(traceback.rstrip())}\n{BUG}"


def print_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For `sys.excepthook`: prints a bug's traceback. Python then exits with 1."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        print(bug_text("".join(format_exception(kind, error, trace))), file=sys.stderr)


def print_error(error: PipelineError) -> None:
    print(error_text(error), file=sys.stderr)


def print_note(what: str, where: Place) -> None:
    """Prints a note in one line."""
    print(f"note: {what} ({where})", file=sys.stderr)


def _excerpt(place: Place) -> list[str]:
    try:
        text = Path(place.path).read_text(encoding="utf-8").splitlines()[place.line - 1]
    except (OSError, UnicodeDecodeError, IndexError):
        return []
    number = str(place.line)
    caret = " " * (place.column - 1) + "^"
    return [f"{number} | {printable(text)}", f"{' ' * len(number)} | {caret}"]
