"""What goes to a terminal: strangers' names and texts cannot command it.

A file, a node or a tensor may be called by characters that a terminal obeys: escape sequences, a
carriage return, marks that turn the direction of what follows. Standard output and error take only
what can be printed, and the rest spelled out (`\\x1b`). What `rich` draws goes around that stream,
spelled out by the console itself, for its colours are commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast


def printable(text: str, allowed: str = "\n\t") -> str:
    """The characters spelled out that a terminal would obey, and not show."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in allowed else _spelled(c) for c in text)


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 1 << 8:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


class Printed:
    """A text stream that takes anything, and passes on what is printable. `raw` is the other."""

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
    """The stream that takes escape sequences, for what draws with them."""
    return stream.raw if isinstance(stream, Printed) else stream


def print_safely() -> None:
    """From here on, in this process. What an encoding lacks is spelled out too."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, Printed) or stream is None:
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, cast(TextIO, Printed(stream)))
