"""npumake build: build projects, as `doit` does, with an exit code per kind of error

All that does not need a failed node is built: the other targets, variants and projects.

example:
  npumake build digits -n 2       # two nodes at a time
  npumake build --paranoid        # read and verify every file, as in CI
  npumake build --executor dask --scheduler tcp://10.0.0.1:8786
  npumake build --frozen          # fail if an artifact differs from npumake.lock
  npumake build --json | jq '.[] | select(.status == "failed")'

exit codes: 0 success; error in 2 the project, 3 the model, 4 a stage, 5 the cache or disk; 6 a
failed gate; 7 an artifact is not the one of the lock file; 1 a bug in npumake
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from npumake import digest
from npumake.cli.projects import (
    NOWHERE,
    NamedBuild,
    builds,
    no_project,
    places,
    project_directories,
)
from npumake.cli.reporter import NodeOutcome, Reporter
from npumake.cli.scheduling import configuration, dep_file, tasks_of
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.cli.sealed_projects import NamedEntry, SealedProjects
from npumake.cli.selection import chosen_nodes, project_of
from npumake.cli.show import error_document
from npumake.errors import PipelineError, ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.frozen import frozen
from npumake.make.remote_files import MODE, MODES
from npumake.make.tasks import run_doit
from npumake.progress import hearing

if TYPE_CHECKING:
    from npumake.make.executor import Executor

EXECUTORS = ("local", "threads", "dask")  # of npumake.make.executors


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="PROJECT",
        help="PROJECT[:TARGET], a folder, a node (npumake list), an artifact",
    )
    build_arguments(parser)
    executor_arguments(parser)
    parser.add_argument(
        "--json", action="store_true", help="what became of each node, for machines"
    )
    wide_argument(parser)
    format_argument(parser)


def executor_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that may use a cluster; -n is the verb's own."""
    parser.add_argument(
        "--executor",
        choices=EXECUTORS,
        help="where nodes run: this process, -n threads of it, or a cluster",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of the cluster, tcp://HOST:PORT, or its scheduler file; by default -n processes here",
    )


def build_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that builds."""
    parser.add_argument("-n", type=int, default=0, metavar="N", help="nodes to build in parallel")
    parser.add_argument(
        "--remote", choices=MODES, help="the use of the remote cache; default write: read and write"
    )
    parser.add_argument("--paranoid", action="store_true", help="read every file again")
    parser.add_argument(
        "--frozen", action="store_true", help="fail if a build would differ from npumake.lock"
    )


def run(arguments: argparse.Namespace) -> int:
    at = places(arguments.tasks)
    prepare(arguments)
    console = sys.stderr if arguments.json else sys.stdout  # to a person meanwhile
    names = [name for names in at.values() for name in names]
    top = next(iter(at))
    entries: Sequence[NamedEntry] = ()
    if not names and not arguments.frozen and arguments.executor is None:
        entries = [*SealedProjects(top).entries()]
    entries = entries or buildable(at, arguments.frozen)
    if not entries:
        raise no_project(top)
    with executor_of(arguments, entries) as executor:
        tasks = [task for name in names for task in _tasks(name, entries)]
        code = run_builds(entries, tasks, top, executor or arguments.n, console)
    if arguments.json:
        print(digest.text([_document(outcome) for outcome in Reporter.outcomes], indent=1))
    return code


def _tasks(name: str, entries: Sequence[NamedEntry]) -> list[str]:
    """The tasks that a name selects: of PROJECT[@VARIANT]:TARGET the nodes of the target, else the
    one of that name."""
    nodes = (node for _, build in entries if isinstance(build, Build) for node in build.plan.nodes)
    return [n.name for n in nodes if n.target and name == f"{n.group}:{n.target}"] or [name]


@contextmanager
def executor_of(
    arguments: argparse.Namespace, entries: Sequence[NamedEntry]
) -> Iterator[Executor | None]:
    """None if doit builds the nodes itself. Raises ProjectError for options that do not fit."""
    memory = next((build.memory for _, build in entries if isinstance(build, Build)), None)
    if arguments.scheduler and arguments.executor != "dask":
        raise ProjectError("--scheduler names a cluster", hint="add --executor dask")
    if arguments.executor is None or memory is None:
        yield None
        return
    # Only such a build loads them.
    from npumake.make.executors import EXECUTORS as OPENINGS
    from npumake.make.executors import LateExecutor

    opening = OPENINGS[arguments.executor]
    executor = LateExecutor(lambda: opening(memory, arguments.scheduler, arguments.n))
    try:
        with hearing(SCREEN.line):
            yield executor
    finally:
        executor.close()


def prepare(arguments: argparse.Namespace) -> None:
    """Passes the options of `build_arguments` on as environment variables."""
    if arguments.paranoid:
        os.environ["NPUMAKE_PARANOID"] = "1"
    if arguments.remote:
        os.environ[MODE] = arguments.remote


def run_builds(
    entries: Sequence[NamedEntry],
    names: Sequence[str],
    directory: Path,
    jobs: int | Executor,
    console: TextIO,
) -> int:
    """Builds the named nodes and projects, by default all; returns the exit code of the first
    error. `jobs` is the number of nodes at a time, or an executor."""
    if not isinstance(jobs, int):
        return _run_doit(entries, names, directory, console, jobs)
    processes = ["-n", str(jobs)] if jobs else []
    return _run_doit(entries, [*processes, *names], directory, console)


def _run_doit(
    entries: Sequence[NamedEntry],
    arguments: Sequence[str],
    directory: Path,
    console: TextIO,
    executor: Executor | None = None,
) -> int:
    """The exit code of the first error; `arguments` are doit's."""
    config = {**configuration(), "dep_file": dep_file(directory), "outfile": console}
    members = {"DOIT_CONFIG": config, "task_npumake": lambda: tasks_of(entries)}
    with redirect_stdout(console):
        code = run_doit(members, [*arguments], executor)
    if Reporter.met_bug:
        return 1
    error = Reporter.first_error
    return error.exit_code if error else code


def _document(outcome: NodeOutcome) -> dict[str, Any]:
    document: dict[str, Any] = {
        "node": outcome.node,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.worker:
        document["worker"] = outcome.worker
    if outcome.check is not None:
        document["check"] = json.loads(outcome.check.read_bytes())["check"]
    if (error := outcome.error) is not None:
        document["error"] = error_document(error)
    return document


def buildable(at: Mapping[Path, Sequence[str]], is_frozen: bool = False) -> list[NamedBuild]:
    """The projects to build. Raises PipelineError for an unknown name, and for a named node of a
    project that cannot be built. doit matches names with a `*`."""
    entries = []
    for top, names in at.items():
        chosen = {name: project_of(name) for name in names if "*" not in name}
        projects = [directory.name for directory in project_directories(top)]
        if not projects and os.path.lexists(top / "project.yaml"):
            raise ProjectError("no project here", str(top), "its project.yaml is not a plain file")
        for name, project in chosen.items():
            if project not in projects:
                hint = did_you_mean(name, projects) if projects else NOWHERE
                raise ProjectError(f"no project and no node `{name}`", hint=hint)
        for project, variant in map(held_to_lock, builds(top)) if is_frozen else builds(top):
            inside = [name for name in chosen if chosen[name] == project != name]
            if inside and isinstance(variant, PipelineError):
                raise variant
            if isinstance(variant, Build):
                chosen_nodes(variant, inside)
            entries.append((project, variant))
    return entries


def held_to_lock(entry: NamedBuild) -> NamedBuild:
    name, build = entry
    if isinstance(build, PipelineError):
        return entry
    try:
        return name, frozen(build)
    except PipelineError as error:
        return name, error
