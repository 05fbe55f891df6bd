"""The interface of a remote: get, size and put of bytes by name, `cas/<sha256>` or `ac/<key>`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

CHUNK_BYTES = 1 << 20  # in memory at a time


@dataclass(frozen=True)
class Patience:
    """Limits in seconds: to connect, name lookup and handshake included; without a byte; and in
    all, while the build gains nothing (npumake.cache.remote.ledger)."""

    connect: float = 3.0
    stall: float = 5.0
    bound: float = 10.0


PATIENCE = Patience()


class RemoteError(Exception):
    """An operation failed.

    A `lasting` reason persists during this build; `is_final` forbids a retry; an outage means that
    the remote does not respond.
    """

    is_final = False

    def __init__(
        self, reason: str, lasting: bool = False, wait: float = 0.0, is_outage: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_outage = is_outage
        self.lasting = lasting
        self.is_final = self.is_final or lasting
        self.wait = wait  # seconds requested by the server


class Deadline:
    """The end of an operation: `left` returns the remaining time for each step."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self, max_seconds: float) -> float:
        """The remaining seconds, at most `max_seconds`. Raises RemoteError when none are left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise RemoteError("too slow", is_outage=True)
        return min(left, max_seconds)

    def allows(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self._end


class Readable(Protocol):
    """The part of a file object that an upload needs."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...


@dataclass(frozen=True)
class Body:
    """The bytes from `start` on; `size` is that of the whole, None if unknown. The reader closes
    it."""

    start: int
    size: int | None
    chunks: Iterator[bytes]
    close: Callable[[], None] = lambda: None


class Transport(Protocol):
    """Absence is a value; all other failures raise RemoteError. Each verb keeps its deadline.
    Thread-safe."""

    def get(self, name: str, deadline: Deadline, start: int = 0) -> Body | None:
        """The bytes from `start` on, or from 0 if the server cannot skip."""
        ...

    def size(self, name: str, deadline: Deadline) -> int | None:
        """The size in bytes; None when absent."""
        ...

    def put(self, name: str, file: Readable, size: int, deadline: Deadline) -> None:
        """Stores `size` bytes of `file` under `name`, whole or not at all."""
        ...
