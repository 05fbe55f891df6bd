"""User-visible errors as data. `cli/show.py` prints them.

    PipelineError
    ├── ProjectError  exit 2   the YAML, or a file it names
    ├── GraphError    exit 3   the model
    ├── StageError    exit 4   a stage failed to build its artifact
    ├── CacheError    exit 5   the store or the disk
    ├── GateError     exit 6   the result is not good enough
    └── LockError     exit 7   an artifact is not the one of the lock file

Any other exception is our bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

MAX_NAMES = 48  # names in a hint
MAX_LETTERS = 1200  # in all names of a hint, unless the first one is longer


@dataclass(frozen=True)
class Place:
    """A position in a text file; `line` and `column` count from 1, 0 means the whole file."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


class Route(str):
    """A dotted key of the project's YAML; the reader of the YAML resolves it to a Place."""


class PipelineError(Exception):
    """What went wrong, where, and how to fix it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, where: Place | str | None = None, hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.what}{place}" + (f"; {self.hint}" if self.hint else "")


class ProjectError(PipelineError):
    exit_code = 2


class GraphError(PipelineError):
    exit_code = 3


class StageError(PipelineError):
    exit_code = 4


class CacheError(PipelineError):
    exit_code = 5


class UnwritableError(CacheError):
    """The disk is read-only, or the folder another user's; stores and memos skip the write."""


class GateError(PipelineError):
    exit_code = 6


class LockError(PipelineError):
    exit_code = 7


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest of `names`, else all of them, or the most similar of
    many.

    >>> did_you_mean("quantised", ["quantized", "compiled"])
    'did you mean `quantized`?'
    >>> did_you_mean("zzz", ["b", "a"])
    'known: a, b'
    """
    ordered = sorted(names)
    near = difflib.get_close_matches(name, ordered, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    short = list(_short(ordered))
    if len(short) == len(ordered):
        return "known: " + ", ".join(ordered)
    similar = sorted(_short(difflib.get_close_matches(name, ordered, n=MAX_NAMES, cutoff=0.0)))
    return f"known: {', '.join(similar)} and {len(ordered) - len(similar)} more"


def _short(names: Sequence[str]) -> Iterator[str]:
    """The first names that fit a hint."""
    room = MAX_LETTERS
    for index, name in enumerate(names[:MAX_NAMES]):
        room -= len(name)
        if room < 0 and index:
            return
        yield name if len(name) <= MAX_LETTERS else f"{name[:MAX_LETTERS]}..."
