"""The base of a change: the artifacts in the lock file of an earlier commit, fetched from the
store.

Nothing is built for it, except by `rebuilt`. Artifacts that the store lacks are absent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from npumake.cache.store import Store
from npumake.errors import LockError, ProjectError
from npumake.make.build import Build
from npumake.make.git import Commit, commit_before, repository
from npumake.make.lock import LOCK_FILE, Lock, lock_in, read_lock


@dataclass(frozen=True)
class Base:
    """The commit a branch left, the changes since, and the project's lock file at it; None if it
    had none. Paths are absolute."""

    commit: Commit
    changes: frozenset[str]
    lock: Lock | None


def base_of(build: Build, ref: str) -> Base:
    """Raises ProjectError outside a repository and for an unknown `ref`."""
    root = repository(build.directory)
    if root is None:
        where = str(build.directory)
        raise ProjectError("not in a git repository", where, "--since compares with a commit")
    commit = _commit(root, ref)
    changes = _changes(commit)
    return Base(commit, changes, _lock_at(build, commit, changes))


_commit = cache(commit_before)
_changes = cache(Commit.changes)


def _lock_at(build: Build, commit: Commit, changes: frozenset[str]) -> Lock | None:
    """An invalid lock file of the base is ignored. An unchanged one is read from here, without
    git."""
    path = Path(os.path.realpath(build.directory)) / LOCK_FILE
    if not commit.holds(path):
        return None
    try:
        data = commit.file(path) if str(path) in changes else path.read_bytes()
        return None if data is None else lock_in(data, f"{commit.name[:12]}:{LOCK_FILE}")
    except (LockError, OSError):
        return None


def stored_file(store: Store, lock: Lock, name: str, folder: Path) -> Path | None:
    """The artifact of a locked node, copied into `folder`; None if it is not locked, or not
    stored."""
    locked = lock.artifacts.get(name)
    if locked is None:
        return None
    path = folder / locked.digest
    if not path.exists():
        store.recall(locked.key)  # a remote has blobs of recalled records only
        if not store.fetch(locked.digest, path):
            return None
    return path


def rebuilt(builds: Sequence[Build], commit: Commit) -> Mapping[str, Lock]:
    """The locks of these projects by name after a build of `commit` into the same cache. A project
    that it lacks, or that does not build, is absent. The build prints to standard error.

    Raises ProjectError if git cannot check the commit out.
    """
    locks: dict[str, Lock] = {}
    with _checkout(commit) as root:
        for build in builds:
            directory = root / os.path.relpath(os.path.realpath(build.directory), commit.root)
            is_built = directory.is_dir() and _is_locked(directory, build.memory.root)
            if is_built and (lock := read_lock(directory)):
                locks[build.plan.project] = lock
    return locks


def _is_locked(directory: Path, store: Path) -> bool:
    """Whether `npumake lock` succeeds there."""
    command = [sys.executable, "-m", "npumake", "lock", str(directory)]
    environment = {**os.environ, "NPUMAKE_CACHE": os.path.abspath(store)}
    process = subprocess.run(
        command, cwd=directory, env=environment, stdout=sys.stderr.fileno(), check=False
    )
    return process.returncode == 0


@contextmanager
def _checkout(commit: Commit) -> Iterator[Path]:
    """The files of the commit in a folder of their own, removed afterwards."""
    with TemporaryDirectory(prefix="npumake-base-") as folder:
        place = Path(folder, "tree")
        commit.check_out(place)
        try:
            yield place
        finally:
            commit.remove(place)
