"""doit's configuration, and its tasks."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake.cli.process import set_up
from npumake.cli.reporter import Reporter
from npumake.cli.screen import SCREEN
from npumake.cli.sealed_projects import NamedEntry, SealedProjects
from npumake.cli.show import print_error
from npumake.errors import PipelineError
from npumake.make.places import project_directories
from npumake.make.tasks import DisposableNotes, failing_task, tasks, use_workers

if TYPE_CHECKING:
    from npumake.make.build import Build
    from npumake.make.node import Node


def configuration(but: Collection[str] = ()) -> dict[str, Any]:
    """The configuration for the current directory; projects in `but` build only if named."""
    set_up()
    use_workers()
    names = (directory.name for directory in project_directories(Path.cwd()))
    return {
        "reporter": Reporter,
        "dep_file": dep_file(Path.cwd()),
        # doit's default depends on the installed dbm; a JSON file may be deleted at any time.
        "backend": "json",
        "codec_cls": DisposableNotes,
        "continue": True,  # with what does not need a failed node; --no-continue stops
        # Without default tasks `doit forget` crashes.
        "default_tasks": [name for name in names if name not in but],
    }


def dep_file(directory: Path) -> str:
    """doit's database, which we do not need; in a temporary folder if `directory` is read-only."""
    file = directory / ".doit.db"
    if os.access(file, os.R_OK | os.W_OK) if file.exists() else os.access(directory, os.W_OK):
        return str(file)
    import atexit  # rare, and slow to load
    from shutil import rmtree
    from tempfile import gettempdir

    from npumake.lifetime.temporaries import FOLDER_PREFIX, temporary_name

    folder = Path(gettempdir(), temporary_name(prefix=FOLDER_PREFIX))  # a later build sweeps it
    folder.mkdir(mode=0o700)
    atexit.register(rmtree, folder, ignore_errors=True)
    return f"{folder}/{file.name}"


def tasks_here() -> Iterator[dict[str, Any]]:
    """The tasks of the project in the current directory, or of all below it."""
    try:
        yield from tasks_of(SealedProjects(Path.cwd()).entries())
    except PipelineError as error:  # the cache itself cannot be used
        print_error(error)
        raise SystemExit(error.exit_code) from None


def tasks_of(entries: Iterable[NamedEntry]) -> Iterator[dict[str, Any]]:
    for name, entry in entries:
        if isinstance(entry, PipelineError):
            yield failing_task(name, entry)
        else:
            yield from tasks(entry, _make)


def _make(build: Build, node: Node) -> Any:
    # Imports NumPy and ONNX; a build with nothing to do never gets here.
    from npumake.make.maker import make
    from npumake.progress import hearing, listening

    with listening(SCREEN.progress), hearing(SCREEN.line):
        return make(build, node)
