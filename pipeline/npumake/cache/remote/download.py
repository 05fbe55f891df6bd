"""Fetches a blob into the near store: in pieces, resumable, verified before use.

The bytes collect in partial/<sha256> of the near store, which survives a reset connection and a
killed build. One process writes it at a time (a lock that a crash releases); another one that needs
the same blob then fetches its own copy.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from npumake.cache.local import LocalStore
from npumake.cache.locks import locked
from npumake.cache.publish import scratch
from npumake.cache.remote.ledger import START_S, Rates
from npumake.cache.remote.transport import CHUNK_BYTES, Body, Deadline, RemoteError, Transport
from npumake.cache.store import Record
from npumake.errors import CacheError
from npumake.progress import report

POLL_S = 0.02
MIN_PACE_S = 1.0  # of transfer, before its pace is judged


class WrongBytesError(RemoteError):
    """The remote sent other bytes than requested."""

    is_final = True


class DearError(RemoteError):
    """The remote sends, but making the artifact is faster."""

    is_final = True


def into(
    near: LocalStore, transport: Transport, record: Record, deadline: Deadline, rates: Rates
) -> bool:
    """Whether the blob is in `near` now; False when the remote lacks it. Raises RemoteError."""
    try:
        with _gathering(near, record.digest, deadline) as path:
            if path is None:
                return True
            with path.open("r+b") as file:
                if not _filled(file, transport, record, deadline, rates):
                    return False
            near.adopt(path, record.digest)
    except CacheError as error:
        raise RemoteError(error.what, lasting=True) from None
    return True


@contextmanager
def _gathering(near: LocalStore, digest: str, deadline: Deadline) -> Iterator[Path | None]:
    """The file for its bytes; None if the near store has the blob by now."""
    path = near.root / "partial" / digest
    while not near.has(digest):
        try:
            lock = locked(path)
        except OSError:  # no locks here: use a private copy
            break
        if lock is None:  # another process or thread fetches it: wait
            deadline.left(0)
            time.sleep(POLL_S)
            continue
        with lock:
            if not near.has(digest):
                yield path
                return
            path.unlink(missing_ok=True)
    if near.has(digest):
        yield None
        return
    with scratch(path, near.root / "scratch") as temporary:
        temporary.touch()
        yield temporary


class _Part:
    """The start of a blob in a file, with its hash; `was_resumed` if an earlier attempt wrote some
    of it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha = hashlib.sha256()
        self.size = 0
        while chunk := file.read(CHUNK_BYTES):
            self._sha.update(chunk)
            self.size += len(chunk)
        self.was_resumed = self.size > 0

    @property
    def digest(self) -> str:
        return self._sha.hexdigest()

    def append(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._sha.update(chunk)
        self.size += len(chunk)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._sha = hashlib.sha256()
        self.size, self.was_resumed = 0, False


def _filled(
    file: BinaryIO, transport: Transport, record: Record, deadline: Deadline, rates: Rates
) -> bool:
    """Whether `file` holds the blob now; False when the remote lacks it. Raises RemoteError."""
    part = _Part(file)
    if part.size < record.size:
        body = transport.get(f"cas/{record.digest}", deadline, part.size)
        if body is None:
            return False
        with closing(body):
            if body.start < part.size:  # the server cannot skip
                part.restart()
            if body.size not in (None, record.size):
                part.restart()
                raise WrongBytesError("it sends wrong bytes")
            _receive(part, body, record, rates)
    _verify(part, record)
    file.flush()
    return True


def _verify(part: _Part, record: Record) -> None:
    """Raises RemoteError, and WrongBytesError if all bytes are from this call."""
    if part.size < record.size:
        raise RemoteError("the response ended early")
    if part.size == record.size and part.digest == record.digest:
        return
    was_resumed = part.was_resumed
    part.restart()
    if was_resumed:  # the earlier bytes may be the damaged ones
        raise RemoteError("the parts do not fit together")
    raise WrongBytesError("it sends wrong bytes")


def _receive(part: _Part, body: Body, record: Record, rates: Rates) -> None:
    """Appends what arrives, at most one chunk too many."""
    began, start = time.monotonic(), part.size
    try:
        for chunk in body.chunks:
            part.append(chunk)
            if part.size > record.size:
                break
            report("fetching", part.size, record.size)
            spent = time.monotonic() - began
            _refuse_slower(part.size - start, record.size - part.size, spent, record)
    finally:
        rates.transferred(part.size - start, time.monotonic() - began)


def _refuse_slower(arrived: int, missing: int, spent: float, record: Record) -> None:
    """Raises DearError if the rest takes longer than making the artifact."""
    if record.seconds is None or spent < MIN_PACE_S:
        return
    if missing * spent > arrived * (record.seconds + START_S):
        raise DearError(f"{arrived / spent / 1e6:.1f} MB/s is slower than making the artifact")
