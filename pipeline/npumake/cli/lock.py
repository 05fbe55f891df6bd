"""npumake lock: build projects and write the digests of their artifacts, one per line

Each project gets npumake.lock, a sorted file for git: `npumake build --frozen` and `npumake ci
--frozen` fail if an artifact differs from it. A failed build leaves the file as it is.

example:
  npumake lock                    # every project here
  npumake lock digits && git add projects/digits/npumake.lock

exit codes: those of npumake build
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from npumake.cache.publish import replacing
from npumake.cli.build import buildable, executor_arguments, executor_of, run_builds
from npumake.cli.projects import NamedBuild, no_project, places
from npumake.errors import LockError, ProjectError
from npumake.make.build import Build
from npumake.make.lock import LOCK_FILE, Lock, read_lock
from npumake.make.locking import lock_of
from npumake.make.missing import display_path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument("-n", type=int, default=0, metavar="N", help="nodes to build in parallel")
    executor_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    at = places(arguments.projects)
    names = [name for names in at.values() for name in names]
    if partial := next((name for name in names if ":" in name or "@" in name), None):
        message = f"`{partial}` is not a whole project"
        raise ProjectError(message, hint="a lock file has all artifacts of a project")
    entries = [entry for entry in buildable(at) if not names or entry[0] in names]
    if not entries:
        raise no_project(next(iter(at)))
    names = [name for name, _ in entries]
    with executor_of(arguments, entries) as executor:
        jobs = executor or arguments.n
        code = run_builds(entries, names, next(iter(at)), jobs, sys.stdout)
    if code:
        return code
    _write(entries)
    return 0


def _write(entries: Sequence[NamedBuild]) -> None:
    for _, build in entries:
        assert isinstance(build, Build)  # it has been built
        path, lock = build.directory / LOCK_FILE, lock_of(build)
        before = _before(build)
        if before is None or before.text != lock.text:
            with replacing(path) as temporary:
                temporary.write_text(lock.text, encoding="utf-8", newline="\n")
        print(f"{display_path(path)}: {_difference(before, lock)}")


def _before(build: Build) -> Lock | None:
    """The present lock file; None for an unreadable one, for example after a conflict."""
    try:
        return read_lock(build.directory)
    except LockError:
        return None


def _difference(before: Lock | None, after: Lock) -> str:
    """The number of artifacts, and how many of them changed."""
    new = {name: locked.digest for name, locked in after.artifacts.items()}
    count = f"{len(new)} artifacts"
    if before is None:
        return count
    old = {name: locked.digest for name, locked in before.artifacts.items()}
    counts = {
        "changed": sum(old[name] != new[name] for name in new.keys() & old.keys()),
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
    }
    changes = [f"{number} {kind}" for kind, number in counts.items() if number]
    return ", ".join([count, *(changes or ["none changed"])])
