"""What a dodo.py needs: its configuration and its tasks.

In a project it builds that project; above `projects/` it builds them all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.cli.process import set_up
from pipeline.cli.projects import Found, builds, project_directories
from pipeline.cli.reporter import INTERRUPTED, Reporter
from pipeline.cli.screen import SCREEN
from pipeline.cli.show import print_error
from pipeline.errors import PipelineError
from pipeline.make.build import Build
from pipeline.make.node import Node
from pipeline.make.tasks import failing_task, tasks
from pipeline.progress import hearing, listening


def doit_config(but: Collection[str] = ()) -> dict[str, Any]:
    """For the directory the dodo file is in, which doit has made the current one. Projects in
    `but` are built only when they are named."""
    set_up()
    names = (directory.name for directory in project_directories(Path.cwd()))
    return {
        "reporter": Reporter,
        "dep_file": dep_file(Path.cwd()),
        # doit's default is whichever dbm there is; a JSON file may be deleted at any time.
        "backend": "json",
        # Without default tasks `doit forget` crashes.
        "default_tasks": [name for name in names if name not in but],
    }


def dep_file(here: Path) -> str:
    """Where doit writes what it need not remember: elsewhere, where it may not write here."""
    file = here / ".doit.db"
    if os.access(file, os.R_OK | os.W_OK) if file.exists() else os.access(here, os.W_OK):
        return str(file)
    # Seldom so, and slow to load.
    import atexit
    from shutil import rmtree
    from tempfile import mkdtemp

    folder = mkdtemp(prefix="npumake-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return f"{folder}/{file.name}"


def task_npumake() -> Iterator[dict[str, Any]]:
    """The tasks of the project the dodo file is in, or of all below it."""
    try:
        yield from tasks_of(builds(Path.cwd()))
    except PipelineError as error:  # the cache itself cannot be used
        print_error(error)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def tasks_of(found: Iterable[Found]) -> Iterator[dict[str, Any]]:
    for name, each in found:
        if isinstance(each, Build):
            yield from tasks(each, _make)
        else:
            yield failing_task(name, each)


def _make(build: Build, node: Node) -> Any:
    # Imports NumPy and ONNX; a build with nothing to do never gets here.
    from pipeline.make.maker import make

    with listening(SCREEN.progress), hearing(SCREEN.line):
        return make(build, node)
