"""Terminal output during a run: finished lines, and one live progress line below.

Without a terminal it prints finished lines only. Worker processes print nothing.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

from npumake.cli.terminal import printable, raw

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 160  # of texts that go into a file or a pipe
MIN_NAME_CHARACTERS = 12  # on the narrowest terminal
FORMATS = ("text", "csv", "markdown")
# What a task of `npumake.progress` counts, where it is not files or bytes.
UNITS = {
    "recipe": "trial",
    "nodes": "node",
    "probes": "probe",
    "comparison": "sample",
    "compiled_check": "sample",
}
UNBOUNDED = 1 << 16  # of a console that crops and folds nothing


def wide_argument(parser: argparse.ArgumentParser) -> None:
    """--wide, of a verb that shows tables."""
    help_text = "show names whole, however narrow the terminal is"
    parser.add_argument("--wide", action="store_true", help=help_text)


def format_argument(parser: argparse.ArgumentParser) -> None:
    """--format, of a verb that shows tables."""
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="of tables: text, csv or markdown"
    )


@contextmanager
def _for_any_reader() -> Iterator[None]:
    """A closed pipe, as of `npumake build | head`, does not end the build."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def count_text(task: str, completed: int, total: int) -> str:
    """How far a task is, in its own unit: `trial 3 of 24` while the third one runs.

    >>> count_text("recipe", 2, 24)
    'trial 3 of 24'
    >>> count_text("verifying", 2, 24)
    '2/24'
    """
    unit = UNITS.get(task)
    if unit is None:
        return f"{completed}/{total}"
    return f"{unit} {min(completed + 1, total)} of {total}"


class Screen:
    """The output stream; imports `rich` on first use."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._live: Any = None
        self._bar: Any = None
        self._stream_in_use: TextIO | None = None
        self._silenced: TextIO | None = None
        self.is_wide = False  # no column is shortened to the terminal's width
        self.format = "text"  # of tables, one of FORMATS
        self._exports: TextIO | None = None  # where tables of another format go
        self._exported = 0  # tables

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

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """Inside the block standard output has only the tables, if they are for machines."""
        if self.format == "text":
            yield
            return
        self._exports, self._exported = sys.stdout, 0
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            self._exports = None

    @property
    def is_export(self) -> bool:
        return self.format != "text"

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
        """The terminal's width in characters, or COLUMNS; None for files and pipes."""
        if self.is_wide or self.format != "text":
            return None
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns):
            return int(columns)
        return int(self.console.width) if self._stream.isatty() else None

    def room(self, used_columns: int) -> int | None:
        """For a name in a line whose other words take so many characters; None: for any name."""
        return None if self.width is None else max(self.width - used_columns, MIN_NAME_CHARACTERS)

    def table(self, table: Table) -> None:
        """Drawn at its own width, which the caller fitted to `width`."""
        from npumake.cli.console import PrintedConsole
        from npumake.cli.exported import EXPORTS

        with _for_any_reader():
            if self.format != "text":
                separator = "\n" if self._exported else ""
                stream = self._exports or self._stream
                stream.write(separator + EXPORTS[self.format](table))
                self._exported += 1
                return
            PrintedConsole(file=raw(self._stream), width=UNBOUNDED).print(table)

    def line(self, text: str, style: str = "") -> None:
        """Prints a finished line, above the live one."""
        if self._stream.isatty():
            self.console.print(text, style=style or None)
        else:
            with _for_any_reader():
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
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._bar = self._live.add_task(name, total=None, count="")

    def progress(self, task: str, completed: int, total: int) -> None:
        if self._live is not None and os.getpid() == self._process:
            count = count_text(task, completed, total)
            self._live.update(self._bar, completed=completed, total=total, count=count)

    def end(self) -> None:
        """Removes the live line."""
        if self._live is not None:
            self._live.stop()
            self._live = self._bar = None


SCREEN = Screen()
