"""The configuration and tasks for a dodo.py.

In a project it builds that project; above `projects/` it builds them all. The signal handler starts
before other imports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from npumake.cli.signals import end_at_signals


def doit_config(but: Collection[str] = ()) -> dict[str, Any]:
    """For the directory of the dodo file, which is doit's current directory. Projects in `but` are
    built only when they are named."""
    end_at_signals()
    from npumake.cli.scheduling import configuration

    return configuration(but)


def task_npumake() -> Iterator[dict[str, Any]]:
    """The tasks of the project the dodo file is in, or of all below it."""
    from npumake.cli.scheduling import tasks_here

    yield from tasks_here()
