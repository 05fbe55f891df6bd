"""Archives: records and their artifacts in one file, for a machine without a network.

A plain tar of plain files, in this order:

    npumake-cache            {"format": 1, "records": n, "artifacts": m}
    ac/<key>                 envelopes (npumake.cache.remote.envelope), those of one artifact
    cas/<sha256>             that artifact
    ...

The same contents give the same bytes. The reader takes nothing else: no link, no folder, no other
name, no extended header. An artifact is stored only if an accepted record precedes it, and only
with the size and the digest of that record. So a reader needs little memory, and no more disk than
the accepted records name (npumake.cache.unpacking).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from npumake.cache.local import LocalStore
from npumake.cache.publish import CHUNK_BYTES, opened, replacing
from npumake.digest import canonical
from npumake.errors import CacheError
from npumake.lifetime.temporaries import sweep
from npumake.progress import report

HEADER, FORMAT = "npumake-cache", 1
BLOCK_BYTES = tarfile.BLOCKSIZE
MEMBER = re.compile(r"(?P<kind>ac|cas)/(?P<name>[0-9a-f]{64})")


class PackedEntry(NamedTuple):
    """One artifact: its digest, its size in bytes, and its envelopes by key."""

    digest: str
    size: int
    envelopes: tuple[tuple[str, bytes], ...]


def write_archive(path: Path, store: LocalStore, artifacts: Iterable[PackedEntry]) -> int:
    """Writes the archive, whole or not at all; returns its size in bytes.

    Raises CacheError if the store has lost an artifact, or holds a damaged one.
    """
    ordered = sorted(artifacts)
    count = sum(len(packed.envelopes) for packed in ordered)
    header = {"format": FORMAT, "records": count, "artifacts": len(ordered)}
    sweep(path.parent)
    with replacing(path) as temporary:
        with temporary.open("xb") as file:
            _write_member(file, HEADER, canonical(header))
            for number, packed in enumerate(ordered):
                report("packing", number, len(ordered))
                for key, data in sorted(packed.envelopes):
                    _write_member(file, f"ac/{key}", data)
                _write_blob(file, store, packed)
            file.write(bytes(2 * BLOCK_BYTES))
        size = temporary.stat().st_size
    return size


def _write_member(file: BinaryIO, name: str, data: bytes) -> None:
    _begin(file, name, len(data))
    file.write(data)
    file.write(bytes(-len(data) % BLOCK_BYTES))


def _begin(file: BinaryIO, name: str, size: int) -> None:
    info = tarfile.TarInfo(name)  # no owner, mode 644, time 0
    info.size = size
    file.write(info.tobuf(tarfile.GNU_FORMAT))


def _write_blob(file: BinaryIO, store: LocalStore, packed: PackedEntry) -> None:
    _begin(file, f"cas/{packed.digest}", packed.size)
    hashed, size = sha256(), 0
    try:
        with opened(store.blob(packed.digest)) as blob:
            while chunk := blob.read(CHUNK_BYTES):
                hashed.update(chunk)
                size += file.write(chunk)
    except FileNotFoundError:
        raise CacheError(f"the artifact {packed.digest} is gone", hint="npumake build") from None
    if (hashed.hexdigest(), size) != (packed.digest, packed.size):
        hint = "npumake cache verify lists the damage; a build replaces the files"
        raise CacheError(f"the artifact {packed.digest} is damaged", hint=hint)
    file.write(bytes(-size % BLOCK_BYTES))
