"""Locks the artifacts of a finished build."""

from __future__ import annotations

import os
from collections.abc import Iterator

from npumake.digest import of_document
from npumake.errors import LockError
from npumake.make.build import Build
from npumake.make.lock import WRITE, Lock, LockedArtifact, locked_name


def lock_of(build: Build) -> Lock:
    """The lock of a project that is built. Raises LockError for a node that is not current."""
    for name, state in build.states().items():
        if state.status != "current":
            reason = next(iter(state.reasons), "")
            raise LockError(f"`{name}` is not current: {reason}", hint=f"build it; {WRITE}")
    return Lock(dict(_artifacts(build)))


def _artifacts(build: Build) -> Iterator[tuple[str, LockedArtifact]]:
    for node in build.plan.nodes:
        stamp = build.stamp(node)
        if stamp is not None and not node.joins:
            size = os.path.getsize(build.artifact(node))
            yield locked_name(node), LockedArtifact(stamp.digest, of_document(stamp.document), size)
