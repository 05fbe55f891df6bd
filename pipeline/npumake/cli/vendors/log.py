"""The log file of a vendor's command, and errors in that vendor's wording.

    2026-01-31 12:00:00,123 file: hb_mapper.py func: hb_mapper line No: 45 Start hb_mapper....

A line starts with the time and the source line, as in the vendors' logs. A table follows its title.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from npumake.cli.reporter import Reporter
from npumake.cli.show import bug_text, error_text, speaking
from npumake.cli.terminal import printable
from npumake.cli.vendors.error_wording import wording_for
from npumake.errors import PipelineError, Place, ProjectError
from npumake.project.document import Document

NOT_READ = "yaml file parse failed. Please double check your input"


def append_log(file: Path, *texts: str) -> None:
    """Appends the texts to the vendor's log file. Raises ProjectError."""
    prefix = _prefix(sys._getframe(1))
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{prefix}{printable(text)}\n" for text in texts)
    except OSError as error:
        message = f"cannot write: {error.strerror}"
        raise ProjectError(message, str(file), "run it in a folder you can write to") from error


def config_text(document: Document) -> str:
    """The content of the vendor's file, as YAML."""
    import yaml

    return "Dump config:\n" + str(yaml.safe_dump(document.data, allow_unicode=True)).rstrip()


def _prefix(frame: FrameType) -> str:
    source = Path(frame.f_code.co_filename)
    now = datetime.now().isoformat(" ", "milliseconds").replace(".", ",")
    return f"{now} file: {source.name} func: {source.stem} line No: {frame.f_lineno} "


@contextmanager
def logging_run(file: Path, tool: str, command: str = "") -> Iterator[None]:
    """Starts a new log and records the failure of the run, if any. Raises ProjectError."""
    Reporter.first_error = None
    if file.is_file():
        file.unlink()
    name = command or tool
    where = f"log will be stored in {file.resolve()}"
    append_log(file, where, f"Start {tool}....", f"npumake version {version('npumake')}")
    try:
        yield
    except PipelineError as error:
        _log_failure(file, error, name)
        raise
    except SystemExit:
        if Reporter.first_error:  # already shown on the screen
            _log_failure(file, Reporter.first_error, name)
        raise
    except Exception:
        from traceback import format_exc

        append_log(file, f"ERROR {bug_text(format_exc())}", f"ERROR exception in command: {name}")
        raise


def _log_failure(file: Path, error: PipelineError, name: str) -> None:
    append_log(file, f"ERROR {error_text(error)}")
    if isinstance(error.where, Place):
        append_log(file, f"ERROR {NOT_READ}")
    append_log(file, f"ERROR exception in command: {name}")


@contextmanager
def worded_as(config: Path, folder: Path) -> Iterator[None]:
    """Rewords errors of the project in `folder` in the keys and paths of a vendor's file."""
    words = wording_for(folder, config.parent)
    try:
        with speaking(words):
            yield
    except PipelineError as error:
        raise type(error)(words(error.what), error.where, words(error.hint)) from error
    except SystemExit:
        if failure := Reporter.first_error:
            Reporter.first_error = type(failure)(
                words(failure.what), failure.where, words(failure.hint)
            )
        raise
