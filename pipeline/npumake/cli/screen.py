"""The terminal while something runs: one live line, and finished lines above it.

Not a terminal: finished lines only, plain. In a worker process: nothing, the parent reports.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from npumake.cli.terminal import printable, raw

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 160  # of texts that go into a file or a pipe
SHORTEST = 12  # characters of a name on the narrowest terminal
UNBOUNDED = 1 << 16  # of a console that crops and folds nothing


def wide_argument(parser: argparse.ArgumentParser) -> None:
    """--wide, of a verb that shows tables."""
    what = "show names whole, however narrow the terminal is"
    parser.add_argument("--wide", action="store_true", help=what)


@contextmanager
def _for_any_reader() -> Iterator[None]:
    """One who has read enough, `npumake build | head`, does not end what is being made."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Screen:
    """`rich` is loaded when there is something to show, not before."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._live: Any = None
        self._bar: Any = None
        self._given: TextIO | None = None
        self._hushed: TextIO | None = None
        self.is_wide = False  # nothing gives way to the terminal's width

    def use(self, stream: TextIO | None) -> None:
        """None: whatever is standard output by then."""
        self._given = stream

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Nothing is shown inside; what was used is used again behind."""
        self._hushed = io.StringIO()
        try:
            yield
        finally:
            self._hushed = None

    @property
    def _stream(self) -> TextIO:
        return self._hushed or self._given or sys.stdout

    @property
    def console(self) -> Any:
        from npumake.cli.console import PrintedConsole

        width = None if self._stream.isatty() else WIDTH
        return PrintedConsole(file=raw(self._stream), width=width)

    @property
    def width(self) -> int | None:
        """Of a terminal, or what COLUMNS says, in characters. A file has room for any line."""
        if self.is_wide:
            return None
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns):
            return int(columns)
        return int(self.console.width) if self._stream.isatty() else None

    def room(self, taken: int) -> int | None:
        """For a name in a line whose other words take so many characters; None: for any name."""
        return None if self.width is None else max(self.width - taken, SHORTEST)

    def table(self, table: Table) -> None:
        """Drawn as wide as it is: it was fitted to `width` by whoever made it."""
        from npumake.cli.console import PrintedConsole

        with _for_any_reader():
            PrintedConsole(file=raw(self._stream), width=UNBOUNDED).print(table)

    def line(self, text: str, style: str = "") -> None:
        """A line that stays; above the live one while that is shown."""
        if self._stream.isatty():
            self.console.print(text, style=style or None)
        else:
            with _for_any_reader():
                self._stream.write(printable(text) + "\n")
                self._stream.flush()

    def text(self, text: str) -> None:
        """Lines of a width of their own, which no terminal's changes."""
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
        """Take the live line away."""
        if self._live is not None:
            self._live.stop()
            self._live = self._bar = None


SCREEN = Screen()
