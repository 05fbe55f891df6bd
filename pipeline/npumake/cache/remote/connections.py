"""Connections to one origin, kept open between requests, and their errors in plain words."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Queue
from typing import TypeVar

from npumake.cache.remote.address import Address, Credentials
from npumake.cache.remote.transport import CHUNK_BYTES, Deadline, Patience, RemoteError

T = TypeVar("T")
CONNECTION_ERRORS = (OSError, http.client.HTTPException)
Connection = http.client.HTTPConnection


class Connections:
    """A pool: idle connections wait for the next request of any thread."""

    def __init__(self, address: Address, credentials: Credentials, patience: Patience) -> None:
        self._address = address
        self._patience = patience
        self._context = _context(credentials) if address.scheme == "https" else None
        self._idle: list[Connection] = []
        self._end = weakref.finalize(self, _close_all, self._idle)

    def take(self, deadline: Deadline) -> tuple[Connection, bool]:
        """A connection for exclusive use, and whether it was used before."""
        with suppress(IndexError):
            connection = self._idle.pop()
            self.hurry(connection, deadline)
            return connection, True
        return self._opened(deadline), False

    def give(self, connection: Connection) -> None:
        """Returns a connection whose last response was read to its end."""
        if connection.sock is not None:
            self._idle.append(connection)

    def hurry(self, connection: Connection, deadline: Deadline) -> None:
        """Sets the time limit of the next step. Raises RemoteError when no time is left."""
        seconds = deadline.left(self._patience.stall)
        if connection.sock is not None:
            connection.sock.settimeout(seconds)

    def _opened(self, deadline: Deadline) -> Connection:
        address, time_left = self._address, deadline.left(self._patience.connect)
        if self._context is None:
            connection = Connection(
                address.host, address.port, timeout=time_left, blocksize=CHUNK_BYTES
            )
        else:
            connection = http.client.HTTPSConnection(
                address.host,
                address.port,
                timeout=time_left,
                context=self._context,
                blocksize=CHUNK_BYTES,
            )
        try:
            within(time_left, connection.connect)
        except CONNECTION_ERRORS as error:
            connection.close()
            raise RemoteError(plain_reason(error), lasting=True, is_outage=True) from None
        return connection


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of `call`, within a time limit: a name lookup has no limit of its own.

    Raises its exceptions, and TimeoutError.
    """
    answer: Queue[tuple[T | None, Exception | None]] = Queue()

    def run() -> None:
        try:
            answer.put((call(), None))
        except Exception as error:  # noqa: BLE001  # raised in the waiting thread
            answer.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = answer.get(timeout=seconds)
    except Empty:
        raise TimeoutError("timed out") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


def _context(credentials: Credentials) -> ssl.SSLContext:
    """Raises RemoteError for a certificate that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=credentials.authority)
        if credentials.certificate:
            context.load_cert_chain(credentials.certificate, credentials.certificate_key)
    except OSError as error:  # ssl.SSLError is one
        raise RemoteError(
            f"a certificate cannot be read: {plain_reason(error)}", lasting=True
        ) from None
    return context


def broken(error: BaseException) -> RemoteError:
    return RemoteError(plain_reason(error), is_outage=isinstance(error, TimeoutError))


def plain_reason(error: BaseException) -> str:
    """A reason that a user can act on, without our own paths and numbers."""
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, http.client.IncompleteRead):
        return "the response ended early"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
