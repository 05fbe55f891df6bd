"""Carrier: moves blobs between the store of this machine and the one that a cluster shares.

A client and its workers share either a cache folder or the remote cache. Blobs are verified by
their digests on arrival; no record is needed, because the digests come from the build itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from npumake.cache.local import LocalStore
from npumake.cache.publish import opened
from npumake.cache.remote.far import Far
from npumake.cache.remote.outbox import FOREVER_S
from npumake.cache.remote.transport import Deadline
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.errors import CacheError
from npumake.lifetime.temporaries import temporary_folder
from npumake.make.memory import BuildMemory
from npumake.make.remote import setup_of
from npumake.make.remote_files import NO_REMOTE

S = TypeVar("S")
T = TypeVar("T")
THREADS = 16  # they wait for the remote


@dataclass(frozen=True)
class Blob:
    """The SHA-256 and size in bytes."""

    digest: str
    size: int


@dataclass
class Carrier:
    """Without `far` all machines share the folder of `near`."""

    near: LocalStore
    far: Far | None
    _sent: set[str] = field(default_factory=set)

    def send(self, path: Path | str, digest: str | None = None) -> Blob:
        """Makes the file a blob that every machine can fetch. `digest` is known if the near store
        may have it already. Raises CacheError."""
        size = os.path.getsize(path)
        if digest in self._sent:
            return Blob(digest, size)
        if digest is None or not self.near.has(digest):
            digest = self.near.put(Path(path))
        blob = Blob(digest, size)
        if self.far is not None:
            self._upload(self.far, blob)
        self._sent.add(digest)
        return blob

    def bring(self, blob: Blob, path: Path) -> None:
        """Publishes the verified blob at `path`. Raises CacheError if no store has it."""
        if self.near.fetch(blob.digest, path):
            return
        record = Record({}, blob.digest, blob.size)
        is_here = self.far is not None and self.far.bring(record, self.near)
        if not is_here or not self.near.fetch(blob.digest, path):
            note = self.far.note if self.far is not None else ""
            raise CacheError(f"the shared store lacks blob {blob.digest[:12]}", hint=note)
        self._sent.add(blob.digest)

    def send_bytes(self, data: bytes) -> Blob:
        """`send` of a small document. Raises CacheError."""
        with temporary_folder() as folder:
            path = folder / "document"
            path.write_bytes(data)
            return self.send(path)

    def bring_bytes(self, blob: Blob) -> bytes:
        """Raises CacheError where no store has it."""
        with temporary_folder() as folder:
            path = folder / "document"
            self.bring(blob, path)
            return path.read_bytes()

    def send_all(self, files: Sequence[tuple[str, str]]) -> list[Blob]:
        """`send` of each (path, digest), in parallel to a remote."""
        return self._side_by_side(lambda file: self.send(*file), files)

    def bring_all(self, files: Sequence[tuple[Blob, Path]]) -> None:
        """`bring` of each, likewise."""
        self._side_by_side(lambda file: self.bring(*file), files)

    def forgive(self) -> None:
        """Uses the remote again after a failure. A job needs what it fetches, so that the time of
        transfers is not bounded; a remote that does not respond is still an error."""
        if self.far is not None:
            self.far.forgive(FOREVER_S)

    def _side_by_side(self, step: Callable[[S], T], items: Sequence[S]) -> list[T]:
        if self.far is None or len(items) < 2:
            return [step(item) for item in items]
        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(step, items))

    def _upload(self, far: Far, blob: Blob) -> None:
        name = f"cas/{blob.digest}"

        def call(deadline: Deadline) -> bool:
            if far.transport.size(name, deadline) != blob.size:
                with opened(self.near.blob(blob.digest)) as file:
                    far.transport.put(name, file, blob.size, deadline)
            return True

        if not _patient(far, call):
            raise CacheError(f"cannot upload to {far.address}", hint=far.note)


def written(document: Json, carrier: Carrier) -> Blob:
    """The document as a blob of the shared store. Raises CacheError."""
    return carrier.send_bytes(json.dumps(document).encode())


def read(document: Blob, carrier: Carrier) -> Json:
    """Raises CacheError where the store lacks it."""
    return json.loads(carrier.bring_bytes(document))


def _patient(far: Far, call: Callable[[Deadline], T]) -> T | None:
    return far.attempt(call, far.ledger, FOREVER_S)


def carrier_of(memory: BuildMemory, shares_folder: bool) -> Carrier:
    """The carrier of a machine. Raises ProjectError for a wrong configuration, CacheError if
    the cluster has no store in common."""
    if shares_folder:
        return Carrier(memory.near, None)
    far = memory.layered.far if memory.layered else None
    if far is None:
        hint = f"give all the same folder as NPUMAKE_CACHE, or {NO_REMOTE}"
        raise CacheError("the machines of the cluster share no store", hint=hint)
    setup = setup_of(memory.workspace) if memory.workspace else None
    if setup is None or not setup.allowed or setup.mode != "write":
        hint = "the user's own settings must name it, and --remote must be `write`"
        raise CacheError(f"nothing may be uploaded to {far.address}", hint=hint)
    if memory.layered is not None:
        memory.layered.fetches_all = True  # a job fetches even artifacts that are faster to build
    carrier = Carrier(memory.near, far)
    carrier.forgive()
    return carrier
