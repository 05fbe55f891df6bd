"""The far store of one process: bounded by its ledger, it returns a result or nothing.

No verb raises RemoteError. A failure is retried while the deadline allows; then it counts as an
absence, which the ledger records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from npumake.cache.local import LocalStore
from npumake.cache.publish import replacing
from npumake.cache.remote import download, envelope
from npumake.cache.remote.address import Address
from npumake.cache.remote.ledger import Ledger, Rates
from npumake.cache.remote.transport import (
    PATIENCE,
    Deadline,
    Patience,
    RemoteError,
    Transport,
)
from npumake.cache.sealed import sealed, unsealed
from npumake.cache.store import Record
from npumake.digest import of_bytes
from npumake.errors import CacheError, PipelineError

T = TypeVar("T")
MAX_ATTEMPTS = 3
BACKOFF_S = 0.1  # before the second attempt, four times longer before each further one
OUTAGE_S = 60.0  # pause after an outage


class Far:
    """`connect` opens the transport at the first use. `memo` stores rates and outages between
    processes. The ledger covers reading; uploads have their own."""

    def __init__(
        self,
        address: Address,
        connect: Callable[[], Transport],
        memo: Path,
        patience: Patience = PATIENCE,
    ) -> None:
        self.address = address
        self.patience = patience
        self.ledger = Ledger(patience.bound)
        self.rates = Rates()
        self.wrong: set[str] = set()  # blobs with wrong bytes, to be uploaded again
        self._connect = connect
        self._transport: Transport | None = None
        self._memo = memo
        self._remember_outage()

    @property
    def transport(self) -> Transport:
        """Raises RemoteError for an unreadable credential or a missing package."""
        if self._transport is None:
            try:
                self._transport = self._connect()
            except PipelineError as error:
                raise RemoteError(str(error), lasting=True) from None
        return self._transport

    @property
    def note(self) -> str:
        """Why the remote is not used; empty while it is."""
        if not self.ledger.is_open:
            return ""
        return f"the remote cache {self.address} is not used: {self.ledger.reason}"

    def forgive(self, bound: float | None = None) -> None:
        """Uses the remote again, regardless of earlier failures. It may waste `bound` seconds."""
        self.ledger = Ledger(self.patience.bound if bound is None else bound)

    # -- reading ---------------------------------------------------------------------------

    def envelope(self, key: str) -> bytes | None:
        """The bytes under /ac/, not parsed; None when absent."""

        def call(deadline: Deadline) -> bytes | None:
            body = self.transport.get(f"ac/{key}", deadline)
            if body is None:
                return None
            with closing(body):
                return _short(body.chunks)

        began = time.monotonic()
        data = self.attempt(call, self.ledger, self.ledger.left)
        if data is not None:
            self.rates.answered(time.monotonic() - began)
        elif not self.ledger.is_open and not self.ledger.failures:
            self.ledger.waste(time.monotonic() - began, "it lacks records, and answers slowly")
        return data

    def bring(self, record: Record, near: LocalStore) -> bool:
        """Fetches the blob of `record` into the near store, verified."""
        making = record.seconds or 0.0
        began = time.monotonic()
        seconds = max(self.ledger.left, making)

        def call(deadline: Deadline) -> bool:
            try:
                return download.into(near, self.transport, record, deadline, self.rates)
            except download.WrongBytesError:
                self.wrong.add(record.digest)
                raise

        is_here = self.attempt(call, self.ledger, seconds)
        spent = time.monotonic() - began
        if is_here:
            self.ledger.settle(spent, making)
            self._remember()
        elif is_here is not None:
            self.ledger.waste(spent, "it lacks the artifact of a record")
        return bool(is_here)

    # -- one operation ---------------------------------------------------------------------

    def attempt(self, call: Callable[[Deadline], T], ledger: Ledger, seconds: float) -> T | None:
        """The result of the first successful attempt; None without one."""
        if ledger.is_open:
            return None
        began, deadline = time.monotonic(), Deadline(seconds)
        for number in range(MAX_ATTEMPTS):
            try:
                result = call(deadline)
            except RemoteError as error:
                failure = error
            else:
                ledger.succeed()
                return result
            pause = max(failure.wait, BACKOFF_S * 4**number)
            if (
                failure.is_final
                or self._is_down(failure, ledger)
                or number == MAX_ATTEMPTS - 1
                or not deadline.allows(pause)
            ):
                break
            time.sleep(pause)
        lasting = failure.lasting or self._is_down(failure, ledger)
        ledger.fail(time.monotonic() - began, failure.reason, lasting)
        if ledger.is_open and failure.is_outage:
            self._remember(time.time() + OUTAGE_S, ledger.reason)
        return None

    @staticmethod
    def _is_down(failure: RemoteError, ledger: Ledger) -> bool:
        """Whether to stop waiting: an outage of a remote that has never responded."""
        return failure.is_outage and not ledger.has_answered

    # -- between processes -----------------------------------------------------------------

    def _remember_outage(self) -> None:
        """Reads what another process recorded about this address."""
        memo = None
        with suppress(OSError, ValueError):
            memo = unsealed(str(self.address), self._file.read_bytes())
        if memo is None:
            return
        self.rates = Rates(memo["bandwidth"], memo["latency"])
        if 0 < memo["until"] - time.time() <= OUTAGE_S:
            self.ledger.reason = memo["reason"]

    def _remember(self, until: float = 0.0, reason: str = "") -> None:
        rates = self.rates
        document = {"bandwidth": rates.bandwidth, "latency": rates.latency, "until": until}
        data = sealed(str(self.address), {**document, "reason": reason})
        with suppress(CacheError, OSError), replacing(self._file) as temporary:
            temporary.write_bytes(data)

    @property
    def _file(self) -> Path:
        return self._memo / f"{of_bytes(str(self.address).encode())[:16]}.json"


def _short(chunks: Iterable[bytes]) -> bytes:
    """An envelope, within its size limit. Raises RemoteError."""
    data = b""
    for chunk in chunks:
        data += chunk
        if len(data) > envelope.MAX_ENVELOPE_BYTES:
            raise RemoteError("a record that is too large", lasting=False)
    return data
