"""Mark and sweep: which files of a store may go, and their removal while builds go on.

    look at the files  →  mark what is in use  →  choose  →  remove what has not changed since

An artifact goes after the last record that names it, so no record that stays loses its artifact. A
build that uses a blob sets its time (npumake.cache.local). So a file is moved aside before it is
removed, and moved back if its time is no longer the one of the first step. No lock is needed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from npumake.cache.inventory import CacheEntry, Inventory, StoredFile, key_of
from npumake.cache.locks import locked
from npumake.lifetime.temporaries import owned, temporary_name

Reason = Literal["unused", "damaged", "quarantined", "partial", "no record"]

# Results that belong to artifacts: they are in use while their inputs of these names are.
DERIVED: Mapping[str, tuple[str, ...]] = {
    "trial": ("optimized_float", "recipe"),
    "probe": ("calibrated",),
}
# The record of a younger blob may be written next.
ORPHAN_AGE_NS = 3600 * 1_000_000_000


class Removal(NamedTuple):
    """A file that may go, and why. `digest` is that of the artifact which it holds or names."""

    file: StoredFile
    reason: Reason
    digest: str = ""


@dataclass(frozen=True)
class Marks:
    """Artifacts in use: keys with their owner, and digests of code (npumake.make.code)."""

    keys: Mapping[str, str]
    codes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SweepPlan:
    """The files that a sweep removes, in order, and the size in bytes of all that there are."""

    removals: tuple[Removal, ...]
    total: int

    @property
    def freed(self) -> int:
        return sum(removal.file.size for removal in self.removals)


def entries_in_use(contents: Inventory, keys: Collection[str]) -> list[CacheEntry]:
    """The entries of `keys`, and those of results that belong to their artifacts."""
    digests = {entry.digest for entry in contents.entries if entry.key in keys}

    def is_in_use(entry: CacheEntry) -> bool:
        names = DERIVED.get(entry.stage)
        is_derived = names and all(entry.inputs.get(name) in digests for name in names)
        return entry.key in keys or bool(is_derived)

    return [entry for entry in contents.entries if entry.digest and is_in_use(entry)]


def planned_sweep(
    contents: Inventory, marks: Marks, now_ns: int, max_bytes: int | None = None
) -> SweepPlan:
    """The removal of all that is not in use.

    With `max_bytes` what is not used stays while there is room for it, the last used first; but
    not what no build can read.
    """
    total = sum(file.size for file in contents.files)
    used = entries_in_use(contents, marks.keys)
    removals = [*_unreadable(contents, {entry.digest for entry in used}, now_ns)]
    excess = None if max_bytes is None else total - _size(removals) - max_bytes
    removals += _unused(contents, {entry.file for entry in used}, excess)
    removed_files = {removal.file for removal in removals}
    codes = {
        entry.code for entry in contents.entries if entry.file not in removed_files
    } | marks.codes
    removals += [
        Removal(file, "unused")
        for file in contents.others
        if file.kind == "closure" and key_of(file) not in codes
    ]
    return SweepPlan(tuple(removals), total)


def _unreadable(contents: Inventory, digests: Collection[str], now_ns: int) -> Iterator[Removal]:
    """Files that no build can use; a download of an artifact in use may be continued."""
    for entry in contents.entries:
        if not entry.digest:
            yield Removal(entry.file, "damaged")
    named = {entry.digest for entry in contents.entries}
    for digest, blob in contents.blobs.items():
        if digest not in named and now_ns - blob.mtime_ns > ORPHAN_AGE_NS:
            yield Removal(blob, "no record", digest)
    for file in contents.others:
        if file.kind == "quarantine":
            yield Removal(file, "quarantined")
        if file.kind == "partial" and key_of(file) not in digests:
            yield Removal(file, "partial")


def _unused(
    contents: Inventory, used: Collection[StoredFile], excess: int | None
) -> Iterator[Removal]:
    """Unused entries, each artifact after the last entry that names it: the least recently used
    first, until `excess` bytes are freed; all without."""
    count = Counter(entry.digest for entry in contents.entries)
    entries = [entry for entry in contents.entries if entry.digest and entry.file not in used]
    entries.sort(key=lambda e: (contents.used_ns(e), e.digest, e.file.name))
    for entry in entries:
        if excess is not None and excess <= 0:
            return
        count[entry.digest] -= 1
        blob = contents.blobs.get(entry.digest)
        files = [entry.file, *([blob] if blob and not count[entry.digest] else [])]
        for file in files:
            yield Removal(file, "unused", entry.digest)
        excess = None if excess is None else excess - sum(file.size for file in files)


def _size(removals: Collection[Removal]) -> int:
    return sum(removal.file.size for removal in removals)


# -- removal -----------------------------------------------------------------------------------


def swept(root: Path, plan: SweepPlan) -> list[Removal]:
    """Removes the planned files of the store at `root` that are unchanged; returns them."""
    (root / "scratch").mkdir(parents=True, exist_ok=True)
    removals = []
    remaining: set[str] = set()  # artifacts that an entry still names
    for removal in plan.removals:
        file = removal.file
        if file.kind == "blob" and removal.digest in remaining:
            continue
        remove = _remove_partial if file.kind == "partial" else _remove_unchanged
        if remove(root, file):
            removals.append(removal)
        else:
            remaining.add(removal.digest)
    return removals


def _remove_unchanged(root: Path, file: StoredFile) -> bool:
    """Whether the file was removed: it stays if it changed, vanished, or may not be moved."""
    path, aside = root / file.name, root / "scratch" / temporary_name()
    with owned(aside):
        try:
            os.rename(path, aside)
            status = os.stat(aside)
        except OSError:
            return False
        if (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns):
            return True
        if not path.exists():
            os.rename(aside, path)
        return False


def _remove_partial(root: Path, file: StoredFile) -> bool:
    """Likewise for a download; not while it goes on."""
    with suppress(OSError):
        lock = locked(root / file.name)
        if lock is not None:
            with lock:
                (root / file.name).unlink()
            return True
    return False
