"""npumake build: build projects, as `doit` does, with exit codes that tell what went wrong

example:
  npumake build digits -n 2       # two nodes at a time
  npumake build --paranoid        # trust no file unread: what CI does

exit codes: 0 all is current, 2 the project, 3 the model, 4 a stage, 5 the cache or disk, 6 a gate
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pipeline.cli.dodo import doit_config, task_npumake
from pipeline.cli.projects import builds
from pipeline.cli.reporter import Reporter
from pipeline.errors import PipelineError
from pipeline.make.tasks import run_doit


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="PROJECT", help="or a node, see npumake list")
    parser.add_argument("-n", type=int, default=0, metavar="N", help="nodes to make at a time")
    parser.add_argument("--paranoid", action="store_true", help="read every file again")


def run(given: argparse.Namespace) -> int:
    if given.paranoid:
        os.environ["NPUMAKE_PARANOID"] = "1"
    named = {task.partition(":")[0].partition("@")[0] for task in given.tasks if ":" in task}
    for name, found in builds(Path.cwd()) if named else ():
        if name in named and isinstance(found, PipelineError):
            raise found  # doit would say that there is no such node
    members = {"DOIT_CONFIG": doit_config(), "task_npumake": task_npumake}
    code = run_doit(members, [*(["-n", str(given.n)] if given.n else []), *given.tasks])
    error = Reporter.first_error
    return error.exit_code if error else code
