"""npumake ci: build what a change touches, and write what CI services and reviewers read

`--since REF` builds the projects with files that differ from the commit where this branch left REF:
their YAML, files that it names, removed and renamed files too. A project with a lock file is also
built if a library or a compiler of its stages differs from the lock of that commit. Figures are
compared with those of that lock file, as the cache has them. Nothing is built for it without
--rebuild-base. Without REF, or with the zeros that GitHub gives for a new branch, everything is
built and nothing is compared.

example:
  npumake ci --since origin/main
  npumake ci --since origin/main --frozen --junit junit.xml --sarif npumake.sarif
  npumake ci --summary summary.md

exit codes: those of npumake build
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from npumake.cache.publish import replacing
from npumake.cli.build import (
    build_arguments,
    buildable,
    executor_arguments,
    executor_of,
    held_to_lock,
    prepare,
    run_builds,
)
from npumake.cli.projects import NamedBuild, configuration_files, no_project, places
from npumake.cli.reporter import Reporter
from npumake.cli.screen import SCREEN, wide_argument
from npumake.errors import PipelineError, ProjectError
from npumake.make.base import Base, base_of
from npumake.make.build import Build
from npumake.make.git import NO_COMMIT, repository
from npumake.make.touched import reasons

MAX_REASONS = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument(
        "--since",
        metavar="REF",
        default="",
        help="the commit or branch that the change started from",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the nodes as test cases")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write errors and findings")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write Markdown for reviewers")
    parser.add_argument(
        "--rebuild-base",
        action="store_true",
        help="build the base too, for artifacts that the cache lacks",
    )
    build_arguments(parser)
    executor_arguments(parser)
    wide_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    if partial := next((name for name in arguments.projects if ":" in name or "@" in name), None):
        raise ProjectError(f"`{partial}` is not a whole project", hint="name projects or folders")
    prepare(arguments)
    at = places(arguments.projects)
    named = [name for names in at.values() for name in names]
    entries = [entry for entry in buildable(at) if not named or entry[0] in named]
    if not entries:
        raise no_project(next(iter(at)))
    ref = "" if arguments.since == NO_COMMIT else arguments.since
    bases = {
        name: base_of(build, ref) for name, build in entries if ref and isinstance(build, Build)
    }
    touched = list(_touched(entries, bases)) if ref else entries
    if arguments.frozen:
        touched = [*map(held_to_lock, touched)]
    code = 0
    if touched:
        names = [name for name, _ in touched]
        directory = next(iter(at))
        with executor_of(arguments, touched) as executor:
            jobs = executor or arguments.n
            code = run_builds(touched, names, directory, jobs, sys.stdout)
    else:
        SCREEN.line("nothing to build")
    _write(arguments, touched, len(entries), bases, code)
    return code


def _touched(entries: Sequence[NamedBuild], bases: dict[str, Base]) -> Iterator[NamedBuild]:
    """The projects that the change concerns, each with the reason in a line."""
    for name, build in entries:
        why = [build.what] if isinstance(build, PipelineError) else list(_why(build, bases[name]))
        if why:
            suffix = f" and {len(why) - MAX_REASONS} more" if len(why) > MAX_REASONS else ""
            SCREEN.line(f"touched   {name}: {', '.join(why[:MAX_REASONS])}{suffix}")
            yield name, build


def _why(build: Build, base: Base) -> Iterator[str]:
    yield from reasons(build, configuration_files(build), base.changes, base.lock)


def _write(
    arguments: argparse.Namespace,
    touched: Sequence[NamedBuild],
    projects: int,
    bases: dict[str, Base],
    code: int,
) -> None:
    if not any((arguments.junit, arguments.sarif, arguments.summary)):
        return
    from npumake.cli.ci_files.collect import Run  # NumPy and ONNX

    run = Run(touched, Reporter.outcomes, bases, projects - len(touched))
    if arguments.rebuild_base:
        run = run.with_rebuilt_base()
    writers = (
        (arguments.junit, run.junit),
        (arguments.sarif, lambda: run.sarif(repository(Path.cwd()) or Path.cwd(), code)),
        (arguments.summary, run.summary),
    )
    for file, text in writers:
        if file is not None:
            with replacing(file) as temporary:
                temporary.write_text(text(), encoding="utf-8", newline="\n")
