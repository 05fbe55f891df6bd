"""What a dodo.py needs: `from pipeline.cli.dodo import DOIT_CONFIG, task_npumake`.

In a project it builds that project; above `projects/` it builds them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.cli.projects import builds
from pipeline.cli.reporter import Reporter
from pipeline.cli.screen import SCREEN
from pipeline.cli.show import print_error
from pipeline.errors import PipelineError
from pipeline.make.build import Build
from pipeline.make.node import Node
from pipeline.make.tasks import failing_task, tasks
from pipeline.progress import listening

# JSON, because doit's default picks whichever dbm there is; the file may be deleted at any time.
DOIT_CONFIG = {"reporter": Reporter, "backend": "json", "verbosity": 0}


def task_npumake() -> Iterator[dict[str, Any]]:
    try:
        for name, found in builds(Path.cwd()):
            if isinstance(found, Build):
                yield from tasks(found, _make)
            else:
                yield failing_task(name, found)
    except PipelineError as error:  # the cache itself cannot be used
        print_error(error)
        raise SystemExit(error.exit_code) from None


def _make(build: Build, node: Node) -> Any:
    # Imports NumPy and ONNX; a build with nothing to do never gets here.
    from pipeline.make.maker import make

    with listening(SCREEN.progress):
        return make(build, node)
