"""Batch: the builds of one process, which share a memory and query its remote at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from npumake.late import when_used
from npumake.make.build import Build

with when_used("npumake.make.restore"):  # only behind a remote
    from npumake.make import restore


def begin_batch(builds: Sequence[Build], selected: frozenset[str] | None) -> None:
    """Declares `builds`, all with one memory, and the nodes of them that are to be built (None:
    all). Before the first of these runs, the remote is queried for all."""
    memory = builds[0].memory
    memory.selected = selected
    memory.restore_batch = partial(_restore, builds)


def restore_once(build: Build) -> None:
    """Fetches from the remote before the first node, once per process."""
    memory = build.memory
    if build.directory in memory.restored or memory.layered is None:
        return
    if memory.restore_batch is not None:
        memory.restore_batch()
    if build.directory not in memory.restored:  # planned since the batch began
        _restore([build])


def _restore(builds: Sequence[Build]) -> None:
    memory = builds[0].memory
    memory.restored |= {build.directory for build in builds}
    memory.restore_batch = None
    if memory.layered is not None and memory.layered.far is not None:
        restore.restore(builds, memory.layered, memory.selected)
