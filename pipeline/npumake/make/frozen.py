"""Frozen builds: an artifact that differs from the lock file ends the build before it is published.

Artifacts are compared, not keys: another version of a library may give the same bytes. The keys
explain why an artifact differs.
"""

from __future__ import annotations

from dataclasses import replace

from npumake import digest
from npumake.errors import LockError
from npumake.make.build import Build
from npumake.make.lock import LOCK_FILE, WRITE, LockedArtifact, locked_name, read_lock
from npumake.make.missing import display_path
from npumake.make.node import Node, NodeKey
from npumake.make.why import differences

ACCEPT = "`npumake lock` accepts the change"
MAX_REASONS = 8
NOT_REPRODUCED = (
    "inputs, tools and code are the locked ones: this machine computes other bytes from them"
)


def frozen(build: Build) -> Build:
    """The build, which must match its lock file. Raises LockError without one, and if the lock has
    other nodes than the plan."""
    lock = read_lock(build.directory)
    if lock is None:
        raise LockError("no lock file", display_path(build.directory / LOCK_FILE), WRITE)
    planned = {locked_name(node) for node in build.plan.nodes if not node.joins}
    if added := sorted(planned - {*lock.artifacts}):
        message = f"the lock file lacks {_listed(added)}"
        raise LockError(message, lock.file, ACCEPT)
    if removed := sorted({*lock.artifacts} - planned):
        message = f"the lock file has {_listed(removed)}, which the project does not build"
        raise LockError(message, lock.place(removed[0]), ACCEPT)
    return replace(build, lock=lock)


def _listed(names: list[str]) -> str:
    count = len(names) - 1
    return f"`{names[0]}`" + (f" and {count} more" if count else "")


def refuse_unlocked(build: Build, node: Node, document: NodeKey, artifact: str) -> None:
    """Raises LockError if a frozen build would give another artifact than the locked one."""
    if build.lock is None or build.lock.allows(node, artifact):
        return
    name = locked_name(node)
    reasons = reasons_for(build, node, build.lock.artifacts[name], document)
    message = f"`{node.name}` differs from the lock file: sha256 {artifact[:12]}"
    raise LockError(message, build.lock.place(name), "\n".join([*reasons, ACCEPT]))


def reasons_for(
    build: Build, node: Node, locked: LockedArtifact, document: NodeKey
) -> tuple[str, ...]:
    """How a key differs from the locked one, in lines; the cache's record has the locked key."""
    if digest.of_document(document) == locked.key:
        return (NOT_REPRODUCED,)
    record = build.memory.store.recall(locked.key)
    if record is None:
        return (f"one of these differs; the cache lacks the old key: {_parts(document)}",)
    lines = differences(record.document, document, node.places, build.memory.closure)
    return lines[:MAX_REASONS]


def _parts(document: NodeKey) -> str:
    """The parts of a key, in words. Inputs are not named: they were compared with the lock
    before."""
    files = [name for names in document["sources"].values() for name in names]
    tools = [f"{name} {version}" for name, version in document["tools"].items()]
    parts = {
        "YAML": [*document["params"]],
        "files": files[:MAX_REASONS] + ["..."] * (len(files) > MAX_REASONS),
        "tools": tools,
    }
    listing = [f"{kind} ({', '.join(names)})" for kind, names in parts.items() if names]
    return ", ".join([*listing, "the code of npumake"])
