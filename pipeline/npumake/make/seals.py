"""Seals over whole projects: a build with nothing to do reads one file and stats the rest.

A project that a build saw current as a whole is sealed: the status (npumake.cache.unchanged) of
every file and folder that this result depends on, and the data of its nodes for doit. While each of
them is unchanged, the project is current. Otherwise the project is planned and its nodes are
compared as if there were no seal.

    program    this package, the metadata of installed packages, the closures in the cache
    project    its YAML, sources, artifacts, stamps and plan, and the folders that hold or list them

The name of the file and its seal cover the other inputs: the folder, the cache, Python, its search
path, and the variables of npumake. `npumake.make.sealing` writes it. Imports little.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from npumake.cache.sealed import unsealed
from npumake.cache.unchanged import status_of
from npumake.digest import Json, canonical, of_bytes
from npumake.make.places import is_paranoid

FOLDER = "seals"  # in the cache
BETWEEN = "\0"  # of the paths in a seal: no path holds it


class Seals:
    """The seals of the projects at `top`, with the cache `root`; read when a process starts.

    An absent, damaged or foreign file holds none; neither does any in a paranoid build.
    """

    def __init__(self, top: Path, root: Path) -> None:
        self.since_ns = time.time_ns()  # before anything is read
        self.root = root.absolute()
        self.top = top
        self.identity = identity(top, root)
        self.file = root / FOLDER / f"{of_bytes(self.identity.encode())}.json"
        self._program: Json = None
        self.entries: dict[str, Json] = {}  # by directory: of projects that are unchanged
        # Whether nothing has run since: a run may change the stamped files.
        self.is_trusted = False

    def check(self, directories: Iterable[Path]) -> None:
        """Finds the projects that are unchanged."""
        content = None if is_paranoid() else self.content()
        if content is None or not _holds(content["program"], str(self.root)):
            return
        self._program = content["program"]
        for directory in map(str, directories):
            entry = content["projects"].get(directory)
            if entry is not None and _holds(entry, directory):
                self.entries[directory] = entry

    def trust(self, has_others: bool) -> None:
        """Until something runs, the result of `check` holds. It is repeated if the dodo file has
        other tasks: their creation may have changed files."""
        entries = {**self.entries, str(self.root): self._program}
        self.is_trusted = not has_others or all(_holds(e, base) for base, e in entries.items())

    def content(self) -> Json | None:
        """The sealed data: the entry of the program, and those of projects by directory."""
        try:
            return unsealed(self.identity, self.file.read_bytes())
        except (OSError, ValueError):
            return None


def status(
    entry: Mapping[str, Json], base: str, is_settled: Callable[[int], bool] | None = None
) -> str | None:
    """The status of an entry's paths, relative to `base`, with the values of its variables."""
    prefix = f"{base}/"
    names = entry["paths"].split(BETWEEN)
    paths = [name if name.startswith("/") else prefix + name for name in names]
    files = status_of(paths, is_settled)
    if files is None or not entry["variables"]:
        return files
    return of_bytes(canonical([files, *(os.environ.get(name) for name in entry["variables"])]))


def identity(top: Path, root: Path) -> str:
    """The inputs of a seal beside files. They are only hashed: a variable may hold a secret."""
    variables = {name: os.environ[name] for name in os.environ if name.startswith("NPUMAKE_")}
    facts = [os.path.abspath(top), os.path.abspath(root), __file__, variables]
    facts += [sys.version, sys.getfilesystemencoding(), sys.path]
    return f"sealed projects {canonical(facts).decode()}"


def _holds(entry: Mapping[str, Json], base: str) -> bool:
    return bool(status(entry, base) == entry["status"])
