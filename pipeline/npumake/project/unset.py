"""Names the environment variables without a value, where a line of a vendor's file uses them.

SyNAP replaces `${ENV:NAME}` by nothing if NAME is not set. What is wrong then is the variable, not
the path or number that is left of the line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npumake.errors import PipelineError, Place, ProjectError
from npumake.project.events import MAX_FILE_BYTES

_VARIABLE = re.compile(r"\$\{ENV:([^}\s]+)\}")


def unset_variables(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, line and column of each variable without a value, once each; the two count from 1. A
    line that is a comment counts for nothing."""
    names = set()
    for number, line in enumerate(text.splitlines(), 1):
        for match in () if line.lstrip().startswith("#") else _VARIABLE.finditer(line):
            if match[1] not in names and not os.environ.get(match[1]):
                names.add(match[1])
                yield match[1], number, match.start() + 1


@contextmanager
def naming_unset_variables() -> Iterator[None]:
    """Errors inside the block name the unset variables of their line."""
    try:
        yield
    except ProjectError as error:
        name_unset_variables(error)
        raise


def name_unset_variables(error: PipelineError) -> None:
    """Adds the unset variables of the error's line to its hint."""
    if not isinstance(error.where, Place) or not error.where.line:
        return
    names = [f"`{name}`" for name, _, _ in unset_variables(_line(error.where))]
    if names:
        plural = "s" if len(names) > 1 else ""
        cause = f"set the environment variable{plural} {' and '.join(names)} of this line"
        error.hint = f"{cause}; {error.hint}" if error.hint else cause


def _line(place: Place) -> str:
    """The line of a place; empty if the file is unreadable or too short."""
    try:
        with Path(place.path).open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES).decode("utf-8", "replace")
        return text.splitlines()[place.line - 1]
    except (OSError, IndexError):
        return ""
