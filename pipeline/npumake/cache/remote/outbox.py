"""Pending uploads: outbox/<key>.json in the near store, one empty file per record.

A stage's result is marked when it is stored, and unmarked when the remote has it. So an upload
delays no stage, survives a crash, and goes on in the next build. Several threads upload at once,
the blob before its record: a reader that finds a record finds its blob.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from npumake.cache.local import LocalStore
from npumake.cache.publish import opened, replacing
from npumake.cache.remote.envelope import envelope_file, packed, unpacked
from npumake.cache.remote.far import Far
from npumake.cache.remote.keys import SigningKey
from npumake.cache.remote.ledger import Ledger
from npumake.cache.remote.transport import Deadline, RemoteError
from npumake.cache.store import Record
from npumake.digest import of_file
from npumake.errors import CacheError, PipelineError

THREADS = 4
WAIT_S = 30.0  # at the end of a build, for pending uploads
FOREVER_S = 24 * 3600.0
AGAIN = b"again\n"  # content of a mark: the remote's blob is wrong


@dataclass(frozen=True)
class Outbox:
    folder: Path

    def add(self, key: str, again: bool = False) -> None:
        """Marks a record. Raises CacheError."""
        with replacing(self.folder / key) as temporary:
            temporary.write_bytes(AGAIN if again else b"")

    def keys(self) -> list[str]:
        try:
            with os.scandir(self.folder) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError:
            return []

    def is_again(self, key: str) -> bool:
        with suppress(OSError):
            return (self.folder / key).read_bytes() == AGAIN
        return False

    def remove(self, key: str) -> None:
        with suppress(OSError):
            (self.folder / key).unlink()


@dataclass
class Uploader:
    """Uploads marked records while the build runs. `ledger` has the reason if it stopped."""

    near: LocalStore
    far: Far
    outbox: Outbox
    signing: SigningKey
    ledger: Ledger = field(default_factory=lambda: Ledger(bound=FOREVER_S))
    uploaded: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: set[str] = field(default_factory=set)
    _given_up: set[str] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Starts threads for the present marks; none if reading has shown an outage."""
        if self.far.ledger.is_open:
            self.ledger.reason = self.ledger.reason or self.far.ledger.reason
            return
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        waiting = len(self._waiting())
        for _ in range(min(THREADS - len(self._threads), waiting)):
            thread = threading.Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self, seconds: float, tell: Callable[[int], None] = lambda _: None) -> int:
        """Waits at most `seconds`; calls `tell` with the number of pending uploads and returns
        it."""
        end = time.monotonic() + seconds
        while not self.ledger.is_open and time.monotonic() < end:
            self.start()
            if not self._threads:
                break
            self._threads[0].join(min(0.2, max(0.0, end - time.monotonic())))
            tell(len(self.outbox.keys()))
        self._stop.set()
        for thread in self._threads:  # each stops at its next chunk
            thread.join(self.far.patience.stall)
        return len(self.outbox.keys())

    @property
    def note(self) -> str:
        """Why uploads stopped, unless reading stopped for the same reason; empty while they go
        on."""
        if not self.ledger.is_open or self.ledger.reason == self.far.ledger.reason:
            return ""
        return f"nothing more is uploaded to {self.far.address}: {self.ledger.reason}"

    def _waiting(self) -> list[str]:
        with self._lock:
            return [k for k in self.outbox.keys() if k not in self._busy | self._given_up]  # noqa: SIM118

    def _work(self) -> None:
        while not self._stop.is_set() and not self.ledger.is_open:
            with self._lock:
                excluded = self._busy | self._given_up
                key = next((k for k in self.outbox.keys() if k not in excluded), None)  # noqa: SIM118
                if key is None:
                    return
                self._busy.add(key)
            try:
                is_done = self._upload(key)
            except PipelineError as error:
                self.ledger.fail(0.0, error.what, lasting=True)
                is_done = False
            with self._lock:
                self._busy.discard(key)
                self._given_up |= set() if is_done else {key}

    def _upload(self, key: str) -> bool:
        """Whether the record is done with. Raises ProjectError if the key cannot be read."""
        signed = self._signed(key)
        if signed is None:
            self.outbox.remove(key)
            return True
        record, data = signed
        again = self.outbox.is_again(key)

        def call(deadline: Deadline) -> bool:
            self._send_blob(record, deadline, again)
            self._send_envelope(key, data, deadline)
            return True

        if not self.far.attempt(call, self.ledger, FOREVER_S):
            return False
        self.outbox.remove(key)
        self.uploaded += 1
        return True

    def _signed(self, key: str) -> tuple[Record, bytes] | None:
        """The record and its envelope, that of another machine as it came; None if the near
        store has lost it, or its artifact."""
        try:
            record = self.near.recall(key)
            if record is not None:
                data = packed(self.signing.sign(key, record))
            else:
                data = envelope_file(self.near.root, key).read_bytes()
                envelope = unpacked(data)
                record = envelope.record if envelope and envelope.key == key else None
            is_whole = record and of_file(self.near.blob(record.digest)) == record.digest
        except (CacheError, OSError):  # no mark, or nothing there
            return None
        return (record, data) if record and is_whole else None

    def _send_blob(self, record: Record, deadline: Deadline, again: bool) -> None:
        name, transport = f"cas/{record.digest}", self.far.transport
        if not again and transport.size(name, deadline) == record.size:
            return
        with opened(self.near.blob(record.digest)) as file:
            transport.put(name, _Stoppable(file, self._stop), record.size, deadline)

    def _send_envelope(self, key: str, data: bytes, deadline: Deadline) -> None:
        self.far.transport.put(f"ac/{key}", BytesIO(data), len(data), deadline)


class _Stoppable:
    """A file whose reads fail once the build no longer waits, so that an upload ends between two
    chunks."""

    def __init__(self, file: BinaryIO, stop: threading.Event) -> None:
        self._file, self._stop = file, stop

    def read(self, size: int = -1) -> bytes:
        if self._stop.is_set():
            raise RemoteError("the build has ended", lasting=True)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
