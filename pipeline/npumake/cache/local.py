"""A store in a directory: blobs/ab/cdef…, records/ab/cdef….json, quarantine/, scratch/.

The modification time of a blob is that of its last use: a sweep keeps what was used after it
looked (npumake.cache.sweep).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from npumake import digest as digests
from npumake.cache.publish import copied, opened, scratch, settle
from npumake.cache.signature import signature_of
from npumake.cache.store import Record, bytes_of, checked, record_in
from npumake.errors import CacheError, UnwritableError

READ_ONLY = 0o444  # a blob never changes; an editor that follows a stray link is stopped


@dataclass(frozen=True)
class LocalStore:
    """The verbs of `Store` over the directory `root`, safe among processes that share it.

    Interrupted files stay in root/scratch, for a sweep; damaged ones in root/quarantine, for
    inspection. Users who share a store read and write within their permissions: the rest is absent,
    and `unstored` lists writes that failed.
    """

    root: Path
    unstored: list[str] = field(default_factory=list, compare=False)

    def has(self, digest: str) -> bool:
        return os.path.isfile(self.blob(digest))

    def was_damaged(self, name: str) -> bool:
        aside = f"{self.root}/quarantine/{checked(name)}"
        return os.path.exists(aside) or os.path.exists(f"{aside}.json")

    def fetch(self, digest: str, path: Path) -> bool:
        blob = self.blob(digest)
        try:
            source = opened(blob)
        except (FileNotFoundError, CacheError):  # absent or unreadable
            return False
        with source, scratch(path, path.parent) as temporary:
            actual, _ = copied(source, temporary)
            if actual == digest:
                # Not flushed: if a power failure cuts it, it is fetched again.
                settle(temporary, path, flush=False)
                _mark_used(blob)
                return True
        self._quarantine(blob, digest)
        return False

    def put(self, path: Path) -> str:
        try:
            return self._put(path)
        except UnwritableError as error:
            self.unstored.append(error.what)
            return digests.of_file(path)

    def _put(self, path: Path) -> str:
        blobs = self.root / "blobs"
        with opened(path) as source, scratch(blobs, self.root / "scratch") as temporary:
            digest, size = copied(source, temporary)
            blob = self.blob(digest)
            existing = signature_of(blob)
            # Same size, other bytes: `fetch` finds out.
            is_here = existing is not None and existing.size == size
            if not is_here or not _mark_used(blob):
                temporary.chmod(READ_ONLY)
                settle(temporary, blob)
        return digest

    def adopt(self, temporary: Path, digest: str) -> None:
        """Moves in a file with the bytes of `digest`, on the same file system. Raises CacheError.

        It is not flushed: its source still has it.
        """
        temporary.chmod(READ_ONLY)
        settle(temporary, self.blob(digest), flush=False)

    def recall(self, key: str) -> Record | None:
        path = self._record(key)
        try:
            with opened(path) as file:
                data = file.read()
        except (FileNotFoundError, CacheError):
            return None
        record = record_in(key, data)
        if record is None:
            self._quarantine(path, f"{key}.json")
        return record

    def remember(self, key: str, record: Record) -> None:
        data = bytes_of(key, record)
        path = self._record(key)
        try:
            self.write(path, data)
            _mark_used(self.blob(record.digest))
        except UnwritableError as error:
            self.unstored.append(error.what)

    def write(self, path: Path, data: bytes, flush: bool = True) -> None:
        """Publishes a file of the store, by way of scratch/; `flush` as in `settle`."""
        with scratch(path, self.root / "scratch") as temporary:
            temporary.write_bytes(data)
            settle(temporary, path, flush)

    def blob(self, digest: str) -> Path:
        """The path of a blob, present or not; not verified."""
        checked(digest)
        return self.root / "blobs" / digest[:2] / digest[2:]

    def _record(self, key: str) -> Path:
        checked(key)
        return self.root / "records" / key[:2] / f"{key[2:]}.json"

    def _quarantine(self, path: Path, name: str) -> None:
        """Two readers may find the same damage; the second finds it moved. A file that may not be
        moved stays, and is found damaged again."""
        aside = self.root / "quarantine" / name
        with suppress(FileNotFoundError, UnwritableError):
            settle(path, aside)


def _mark_used(blob: Path) -> bool:
    """Whether the blob is still there; its time is set to now, if that is allowed."""
    now = time.time_ns()
    try:
        os.utime(blob, ns=(now, now))
    except FileNotFoundError:
        return False
    except OSError:  # another user's
        pass
    return True
