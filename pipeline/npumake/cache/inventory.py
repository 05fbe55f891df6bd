"""The content of a store: each file with size and time, and the references of each record."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from npumake.cache.local import LocalStore
from npumake.cache.remote.envelope import MAX_ENVELOPE_BYTES, unpacked
from npumake.cache.store import Record, record_in

Kind = Literal["blob", "record", "envelope", "closure", "quarantine", "partial", "pin", "memo"]

# The folder of each kind, and the names in it. `outbox/`, `locks/` and `scratch/` are not content.
FOLDERS: Mapping[Kind, str] = {
    "blob": "blobs",
    "record": "records",
    "envelope": "signed",
    "closure": "closures",
    "quarantine": "quarantine",
    "partial": "partial",
    "pin": "pins",
    "memo": ".",  # the tables of the build, beside the folders
}
_NAMES = re.compile(r"[0-9a-f]{2}/[0-9a-f]{62}(\.json)?")


class StoredFile(NamedTuple):
    """A file of the store: its name there, its size in bytes, its time in nanoseconds."""

    kind: Kind
    name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class CacheEntry:
    """A record or an envelope, without its document; `digest` is empty if it is damaged."""

    file: StoredFile
    key: str
    digest: str = ""
    size: int = 0  # of the artifact, in bytes
    seconds: float | None = None
    stage: str = ""
    code: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)  # digests by name


@dataclass(frozen=True)
class Inventory:
    """The contents of the store at one time; blobs by digest."""

    blobs: Mapping[str, StoredFile]
    entries: tuple[CacheEntry, ...]
    others: tuple[StoredFile, ...]

    @property
    def files(self) -> Iterator[StoredFile]:
        yield from self.blobs.values()
        yield from (entry.file for entry in self.entries)
        yield from self.others

    def used_ns(self, entry: CacheEntry) -> int:
        """When its artifact was used last; the time of the record itself without a blob."""
        return self.blobs.get(entry.digest, entry.file).mtime_ns


def inventory(store: LocalStore) -> Inventory:
    """Reads every record, no blob. Files that vanish meanwhile are absent."""
    blobs = {key_of(file): file for file in _files(store.root, "blob")}
    entries = []
    for kind in ("record", "envelope"):
        for file in _files(store.root, kind):
            if (entry := _entry(store.root, file)) is not None:
                entries.append(entry)
    kinds: tuple[Kind, ...] = ("closure", "quarantine", "partial", "pin", "memo")
    others = [file for kind in kinds for file in _files(store.root, kind)]
    return Inventory(blobs, tuple(entries), tuple(others))


def read_entry(path: Path, kind: Kind, key: str) -> Record | None:
    """The record in a file of the store; None if it is damaged or of another key. Raises
    OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_ENVELOPE_BYTES if kind == "envelope" else -1)
    if kind == "record":
        return record_in(key, data)
    envelope = unpacked(data)
    return envelope.record if envelope is not None and envelope.key == key else None


def _entry(root: Path, file: StoredFile) -> CacheEntry | None:
    """The entry; None if the file has vanished or may not be read."""
    key = key_of(file)
    try:
        record = read_entry(root / file.name, file.kind, key)
    except OSError:
        return None
    if record is None or not isinstance(record.document, dict):
        return CacheEntry(file, key)
    document = record.document
    inputs = document.get("inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    return CacheEntry(
        file,
        key,
        record.digest,
        record.size,
        record.seconds,
        str(document.get("stage", "")),
        str(document.get("code", "")),
        {str(name): str(digest) for name, digest in inputs.items()},
    )


def key_of(file: StoredFile) -> str:
    """The key or digest in the name of a file: `records/ab/cdef….json` → `abcdef…`."""
    return "".join(file.name.split("/")[1:]).removesuffix(".json")


def _files(root: Path, kind: Kind) -> Iterator[StoredFile]:
    """The files of a kind, sorted by name. Other names are not the store's, and stay."""
    folder = FOLDERS[kind]
    nested = kind in ("blob", "record", "envelope")
    for path in sorted(_below(f"{root}/{folder}", nested)):
        name = os.path.relpath(path, root)
        inside = name.partition("/")[2]
        if (nested and not _NAMES.fullmatch(inside)) or Path(name).name.startswith("."):
            continue
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        yield StoredFile(kind, name, status.st_size, status.st_mtime_ns)


def _below(folder: str, nested: bool) -> Iterator[str]:
    """The plain files in a folder, or in its folders."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(entry.path, False) if nested else ()
                elif not nested and entry.is_file(follow_symlinks=False):
                    yield entry.path
    except OSError:
        return
