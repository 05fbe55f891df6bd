"""Terminal output during a run: finished lines, and one live progress line below.

Without a terminal it prints finished lines only. Worker processes print nothing.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from npumake.cli.terminal import printable, raw

WIDTH = 160  # of tables that go into a file or a pipe


class Screen:
    """The output stream; imports `rich` on first use."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._live: Any = None
        self._bar: Any = None
        self._stream_in_use: TextIO | None = None
        self._silenced: TextIO | None = None

    def use(self, stream: TextIO | None) -> None:
        """Writes to `stream` from now on; None means standard output."""
        self._stream_in_use = stream

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Discards output inside the block."""
        self._silenced = io.StringIO()
        try:
            yield
        finally:
            self._silenced = None

    @property
    def _stream(self) -> TextIO:
        return self._silenced or self._stream_in_use or sys.stdout

    @property
    def console(self) -> Any:
        from npumake.cli.console import PrintedConsole

        width = None if self._stream.isatty() else WIDTH
        return PrintedConsole(file=raw(self._stream), width=width)

    @property
    def width(self) -> int | None:
        """The terminal's width in characters; None for files and pipes."""
        return int(self.console.width) if self._stream.isatty() else None

    def line(self, text: str, style: str = "") -> None:
        """Prints a finished line, above the live one."""
        if self._stream.isatty():
            self.console.print(text, style=style or None)
        else:
            self._stream.write(printable(text) + "\n")
            self._stream.flush()

    def text(self, text: str) -> None:
        """Prints lines without wrapping them."""
        self._stream.write(printable(text) + "\n")
        self._stream.flush()

    def begin(self, name: str) -> None:
        if not self._stream.isatty():
            return
        if self._live is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                console=self.console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._bar = self._live.add_task(name, total=None, count="")

    def progress(self, what: str, done: int, total: int) -> None:
        if self._live is not None and os.getpid() == self._process:
            self._live.update(self._bar, completed=done, total=total, count=f"{done}/{total}")

    def end(self) -> None:
        """Removes the live line."""
        if self._live is not None:
            self._live.stop()
            self._live = self._bar = None


SCREEN = Screen()
