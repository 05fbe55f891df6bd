"""The log that a vendor's command leaves of every run, and errors in that vendor's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.cli.reporter import Reporter
from pipeline.cli.screen import WIDTH
from pipeline.cli.show import error_text, speaking
from pipeline.cli.vendor_words import words_of
from pipeline.errors import PipelineError, ProjectError


def logged(file: Path, *told: Any) -> None:
    """Tables and lines that the screen shows, behind what is in the vendor's log file."""
    from pipeline.cli.console import PrintedConsole

    try:
        with file.open("a", encoding="utf-8") as stream:
            log = PrintedConsole(file=stream, width=WIDTH)
            for item in told:
                log.print(item)
    except OSError as error:
        what = f"cannot write: {error.strerror}"
        raise ProjectError(what, str(file), "run it in a folder of yours") from error


@contextmanager
def run_logged(file: Path, tool: str) -> Iterator[None]:
    """The log of this run, begun anew: also of one that fails. Raises ProjectError."""
    Reporter.first_error = None
    if file.is_file():
        file.unlink()
    logged(file, f"Start {tool}....", f"npumake version {version('npumake')}")
    try:
        yield
    except PipelineError as error:
        logged(file, error_text(error))
        raise
    except SystemExit:
        if Reporter.first_error:  # the screen has shown it
            logged(file, error_text(Reporter.first_error))
        raise
    logged(file, f"End {tool}")


@contextmanager
def in_words_of(config: Path, folder: Path) -> Iterator[None]:
    """Errors of the project in `folder` name the keys and paths of a vendor's file."""
    words = words_of(folder, config.parent)
    try:
        with speaking(words):
            yield
    except PipelineError as error:
        raise type(error)(words(error.what), error.where, words(error.hint)) from error
    except SystemExit:
        if told := Reporter.first_error:
            Reporter.first_error = type(told)(words(told.what), told.where, words(told.hint))
        raise
