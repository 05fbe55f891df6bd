"""Escapes untrusted text for the terminal.

Names of files, nodes or tensors may contain control characters: escape sequences, carriage returns,
marks of text direction. Standard output and error escape them (`\\x1b`). Output of `rich` bypasses
these streams, because colors are control sequences; its console escapes the text itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

DOTS = "..."  # marks the gap of a shortened name


def printable(text: str, allowed: str = "\n\t") -> str:
    """The text with control characters escaped, except those in `allowed`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in allowed else _spelled(c) for c in text)


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 1 << 8:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def value_text(value: object) -> str:
    """A value of a document as a line or a cell shows it."""
    if value is None:
        return "--"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def shortened(name: str, max_columns: int | None) -> str:
    """At most so many characters of a terminal: the head of a name, and more of its tail, which
    distinguishes nodes. None: the whole name."""
    if max_columns is None or 2 * len(name) <= max_columns:  # no character is wider than two
        return name
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= max_columns:
        return name
    room = max(max_columns - len(DOTS), 2)
    head = room // 3 or 1
    return set_cell_size(name, head) + DOTS + set_cell_size(name[::-1], room - head)[::-1]


class Printed:
    """A text stream that escapes control characters and writes to `raw`."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """The unescaped stream, for output that uses control sequences."""
    return stream.raw if isinstance(stream, Printed) else stream


def print_safely() -> None:
    """Escapes standard output and error from now on, including characters outside the encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, Printed) or stream is None:
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, cast(TextIO, Printed(stream)))
