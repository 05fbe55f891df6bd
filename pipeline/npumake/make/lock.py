"""Lock: the artifacts of a project, one a line, in a file that git merges.

    <SHA-256 of the artifact> <its key> <bytes> <node>

Nodes are named without the project: `statistics`, `rdk-x5/calibrated`, `@kl:rdk-x5/calibrated`. The
order is fixed. git merges two changes with an unchanged line between them, so a heading separates
the targets. An artifact that joins all targets (the report) is not locked: it follows from the
others, and any two branches would conflict in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from npumake.errors import LockError, Place
from npumake.make.missing import display_path
from npumake.make.node import Node

LOCK_FILE = "npumake.lock"
MAX_LOCK_BYTES = 1 << 24
FORMAT = "# npumake.lock 1"
HEAD = f"""{FORMAT}
# The artifacts of this project: SHA-256, key, bytes and node of each. `npumake lock` writes this
# file, also after a conflict. `npumake build --frozen` requires it.
"""
# The last target needs an unchanged line behind it, too.
END = "# end\n"
SHARED = "all targets"
WRITE = "`npumake lock` builds the project and writes it"
_LINE = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{64}) (0|[1-9][0-9]{0,18}) ([^\s#].*)")
_CONFLICT = re.compile(r"(<{7}|={7}|>{7}|\|{7})( |$)")


@dataclass(frozen=True)
class LockedArtifact:
    """`size` is in bytes; `line` counts from 1, 0 if it was not read from a file."""

    digest: str
    key: str
    size: int
    line: int = 0


@dataclass(frozen=True)
class Lock:
    """Locked artifacts by node; `file` is the name to show."""

    artifacts: Mapping[str, LockedArtifact]
    file: str = LOCK_FILE

    def allows(self, node: Node, digest: str) -> bool:
        """Whether a build may give this artifact. A frozen plan has no nodes that are absent
        here."""
        locked = self.artifacts.get(locked_name(node))
        return node.joins or (locked is not None and locked.digest == digest)

    def place(self, name: str) -> Place:
        locked = self.artifacts.get(name)
        return Place(self.file, locked.line, 1) if locked and locked.line else Place(self.file)

    @property
    def text(self) -> str:
        names = sorted(self.artifacts, key=lambda name: (_section(name), name))
        sections = [HEAD]
        for heading, members in groupby(names, _section):
            lines = (f"{self._written(name)}\n" for name in members)
            sections.append(f"# {heading or SHARED}\n{''.join(lines)}")
        return "\n".join([*sections, END])

    def _written(self, name: str) -> str:
        locked = self.artifacts[name]
        return f"{locked.digest} {locked.key} {locked.size} {name}"


def locked_name(node: Node) -> str:
    """`rdk-x5/calibrated`, `@kl:rdk-x5/calibrated`: a lock survives the renaming of its project."""
    return f"@{node.variant}:{node.short}" if node.variant else node.short


def _section(name: str) -> str:
    """The target and variant of a node; empty for one of all targets. A heading of the file."""
    variant, _, short = name.rpartition(":")
    target = short.rpartition("/")[0]
    return f"{variant}:{target}" if variant and target else variant or target


def read_lock(directory: Path) -> Lock | None:
    """The lock file of the project in `directory`; None without one. Raises LockError."""
    path = directory / LOCK_FILE
    if not os.path.lexists(path):
        return None
    file_name = display_path(path)
    if not path.is_file() or path.stat().st_size > MAX_LOCK_BYTES:
        raise LockError("not a lock file", file_name, f"remove it; {WRITE}")
    return lock_in(path.read_bytes(), file_name)


def lock_in(data: bytes, file_name: str) -> Lock:
    """The lock in the bytes of a file; `file_name` is for errors. Raises LockError."""
    artifacts: dict[str, LockedArtifact] = {}
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if lines[0] != FORMAT and not _CONFLICT.match(lines[0]):
        raise LockError("not a lock file of this version of npumake", file_name, WRITE)
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        name, locked = _read(line, Place(file_name, number, 1))
        other = artifacts.setdefault(name, locked)
        if (other.digest, other.key) != (locked.digest, locked.key):
            message = f"two artifacts of `{name}`, also in line {other.line}"
            raise LockError(
                message, Place(file_name, number, 1), f"two branches changed it: {WRITE}"
            )
    return Lock(artifacts, file_name)


def _read(line: str, place: Place) -> tuple[str, LockedArtifact]:
    if _CONFLICT.match(line):
        raise LockError("a merge conflict", place, WRITE)
    match = _LINE.fullmatch(line)
    if match is None:
        raise LockError("not an artifact of a lock file", place, WRITE)
    digest, key, size, name = match.groups()
    return name, LockedArtifact(digest, key, int(size), place.line)
