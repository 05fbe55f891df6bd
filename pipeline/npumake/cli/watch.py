"""npumake watch: build on every save, and print changes of accuracy, size and placement

It watches the YAML and every file that it names, and compares each build with the last one of the
same target. An error is printed, and watching continues. Ctrl-C ends it, with exit code 130.

example:
  npumake watch
  npumake watch digits -n 2
  npumake watch digits:rdk-x5/comparison     # as far as that node
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.signature import Signature
from npumake.cli.projects import builds, no_project, places, planned_from, project_directories
from npumake.cli.screen import SCREEN
from npumake.cli.selection import project_of
from npumake.errors import PipelineError, Place, ProjectError, did_you_mean
from npumake.lifetime.parent import supervised
from npumake.make.build import Build
from npumake.make.watched_files import Stamps, WatchedProject, watched

if TYPE_CHECKING:
    from npumake.report.facts import Facts

POLL_S = 0.4
MAX_LOAD = 0.1  # share of the time that polling may take, with many files
SETTLED_S = 0.1  # an editor writes several files; between two equal readings
GATE_UNMET = 6  # the artifacts are complete nevertheless


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", nargs="*", metavar="PROJECT", help="or its folder, a node; all when none is named"
    )
    parser.add_argument("-n", type=int, default=0, metavar="N", help="nodes to build in parallel")


def run(arguments: argparse.Namespace) -> int:
    at = places(arguments.tasks)
    _refuse_unknown(at)
    command = [sys.executable, "-P", "-m", "npumake", "build"]
    command += [*(["-n", str(arguments.n)] if arguments.n else []), *arguments.tasks]
    facts = _facts(at)
    watching = _watching(at, {})
    while True:
        stamps = _stamps(at, watching)
        facts = _built(at, command, facts)
        watching, before = _watching(at, watching), watching
        if watching != before:  # new files count as they are now
            stamps = {path: stamps.get(path, new) for path, new in _stamps(at, watching).items()}
        SCREEN.line(f"watching {len(stamps)} files; Ctrl-C ends it", "dim")
        changed = _wait(at, watching, stamps)
        SCREEN.line(f"changed: {', '.join(changed)}", "bold")


def _refuse_unknown(at: Mapping[Path, Sequence[str]]) -> None:
    """Raises ProjectError for a name without a project, and without any project."""
    for top, names in at.items():
        projects = [directory.name for directory in project_directories(top)]
        if not projects:
            raise no_project(top)
        for name in names:
            project = project_of(name)
            if project not in projects and "*" not in name:
                hint = did_you_mean(name, projects)
                raise ProjectError(f"no project and no node `{name}`", hint=hint)


def _directories(at: Mapping[Path, Sequence[str]]) -> Iterator[Path]:
    for top, names in at.items():
        chosen = {project_of(name) for name in names}
        for directory in project_directories(top):
            if not names or directory.name in chosen or any("*" in name for name in names):
                yield directory


# -- what is watched -------------------------------------------------------------------------


def _watching(
    at: Mapping[Path, Sequence[str]], before: Mapping[Path, WatchedProject]
) -> dict[Path, WatchedProject]:
    """The files of each project. One that cannot be planned keeps those of `before`, with the file
    of its error."""
    projects: dict[Path, WatchedProject] = {}
    for directory in _directories(at):
        for _, build in builds(directory):
            if isinstance(build, Build):
                projects[directory] = watched(directory, build.plan, planned_from(directory))
            else:
                last = before.get(directory, WatchedProject(directory))
                projects[directory] = last.with_file(_file_of(build))
    return projects


def _file_of(error: PipelineError) -> str | None:
    place = error.where.path if isinstance(error.where, Place) else error.where
    return os.path.abspath(place) if place else None


def _stamps(
    at: Mapping[Path, Sequence[str]], watching: Mapping[Path, WatchedProject]
) -> dict[str, Signature | None]:
    stamps: dict[str, Signature | None] = {}
    for directory in _directories(at):  # a new project too
        stamps |= watching.get(directory, WatchedProject(directory)).stamps()
    return stamps


def _wait(
    at: Mapping[Path, Sequence[str]], watching: Mapping[Path, WatchedProject], before: Stamps
) -> list[str]:
    """Waits for a change, and until its files are written; returns their names."""
    start = time.monotonic()
    while (after := _stamps(at, watching)) == before:
        time.sleep(max(POLL_S, (time.monotonic() - start) / MAX_LOAD))
        start = time.monotonic()
    while True:
        time.sleep(SETTLED_S)
        last, after = after, _stamps(at, watching)
        if last == after:
            break
    names = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [os.path.relpath(name) for name in names]


# -- what is built ---------------------------------------------------------------------------


def _built(
    at: Mapping[Path, Sequence[str]], command: Sequence[str], earlier: Mapping[str, Facts]
) -> dict[str, Facts]:
    """Builds in a process of its own, since Python keeps the modules of hooks and operators; prints
    the differences to the `known` facts and returns the new ones."""
    code = subprocess.call(supervised(command))
    facts = _facts(at)
    if code not in (0, GATE_UNMET):
        SCREEN.line(f"the build failed ({code}); it runs again after the next save", "yellow")
    _print_changes(earlier, facts, code)
    names = {*earlier, *facts}
    return {name: {**earlier.get(name, {}), **facts.get(name, {})} for name in names}


def _facts(at: Mapping[Path, Sequence[str]]) -> dict[str, Facts]:
    """The facts of each target, of the artifacts that are current."""
    from npumake.report.build_facts import build_facts

    facts: dict[str, Facts] = {}
    for directory in _directories(at):
        for _, build in builds(directory):
            groups = _artifacts(build) if isinstance(build, Build) else {}
            for name, artifacts in groups.items():
                with suppress(PipelineError, OSError):  # replaced meanwhile: not comparable
                    facts[name] = build_facts(artifacts)
    return facts


def _artifacts(build: Build) -> dict[str, dict[str, Path]]:
    """The current artifacts that are compared, by target and stage."""
    from npumake.report.build_facts import COMPARED

    states = build.states()
    groups: dict[str, dict[str, Path]] = {}
    for node in build.plan.nodes:
        if node.stage in COMPARED and states[node.name].status == "current":
            group = groups.setdefault(node.name.rpartition("/")[0], {})
            group[node.stage] = build.artifact(node)
    return groups


def _print_changes(earlier: Mapping[str, Facts], facts: Mapping[str, Facts], code: int) -> None:
    """The differences of the sections that both builds have."""
    from npumake.cli.diff import difference_lines
    from npumake.report.diff import FileDifference, of_facts

    compared = changed = False
    for name in sorted(earlier.keys() & facts.keys()):
        common = earlier[name].keys() & facts[name].keys()
        old, new = ({entry: side[name][entry] for entry in common} for side in (earlier, facts))
        sections = of_facts(dict(sorted(old.items())), dict(sorted(new.items())))
        compared, changed = compared or bool(common), changed or bool(sections)
        for line in difference_lines(FileDifference(name, sections)) if sections else ():
            SCREEN.line(line)
    if compared and not changed and code in (0, GATE_UNMET):
        SCREEN.line("no change in accuracy, size and placement")
