"""The near store in front of a far one: read-through, write-behind.

    recall     the near record; else a stored envelope; else the far one
    fetch      the near blob; else the far one, when that is predicted to be faster than making it
    remember   the near store at once; the remote while the build goes on

Trusted envelopes are stored in signed/ beside the near store's own records, never among them. The
policy verifies them on every read, so a key can be revoked, and one project's policy does not
affect another's builds.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from npumake.cache.local import LocalStore
from npumake.cache.remote.ahead import Ahead
from npumake.cache.remote.envelope import MAX_ENVELOPE_BYTES, envelope_file
from npumake.cache.remote.far import Far
from npumake.cache.remote.keys import SigningKey
from npumake.cache.remote.ledger import pays
from npumake.cache.remote.outbox import Outbox, Uploader
from npumake.cache.remote.trust import Policy, TrustVerdict
from npumake.cache.store import Record
from npumake.errors import CacheError


@dataclass
class LayeredStore:
    """The verbs of `Store`. Without `far` nothing is fetched; without `outbox` nothing is uploaded.

    Slower or less safe than the near store by at most what the ledger allows.
    """

    near: LocalStore
    far: Far | None
    policy: Policy
    outbox: Outbox | None = None
    signing: SigningKey | None = None
    fetches_all: bool = False  # even artifacts that are faster to build
    _ahead: Ahead = field(init=False)
    _recalled: dict[str, Record] = field(default_factory=dict)  # by digest
    # Trusted envelopes by digest and key, until the artifact has arrived.
    _arrived: dict[str, dict[str, bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._ahead = Ahead(self.bring)

    def has(self, digest: str) -> bool:
        return self.near.has(digest)

    def was_damaged(self, name: str) -> bool:
        return self.near.was_damaged(name)

    def put(self, path: Path) -> str:
        return self.near.put(path)

    def remember(self, key: str, record: Record) -> None:
        self.near.remember(key, record)
        if self.far is not None:
            self.far.ledger.earn(record.seconds or 0.0)
        if self.outbox is not None:
            with suppress(CacheError):  # the near store has reported it already
                self.outbox.add(key, record.digest in self.far.wrong if self.far else False)

    def recall(self, key: str) -> Record | None:
        record = self.near.recall(key)
        if record is None:
            record = self.verdict(key).record
        if record is not None:
            self._recalled[record.digest] = record
        return record

    def fetch(self, digest: str, path: Path) -> bool:
        begun = self._ahead.result(digest)  # its envelope is written after the blob
        if self.near.fetch(digest, path):
            return True
        is_here = self.bring(digest) if begun is None else begun
        return is_here and self.near.fetch(digest, path)

    def arrived(self, digest: str) -> bool:
        """Whether the near store has the blob now; waits for one that is on its way."""
        begun = self._ahead.result(digest)
        return self.near.has(digest) or self.bring(digest) if begun is None else begun

    def bring(self, digest: str) -> bool:
        """Whether the near store has the blob of a recalled record now: from the far store, if that
        is faster."""
        record = self._recalled.get(digest)
        if record is not None and self.fetches_all:
            record = replace(record, seconds=None)
        if self.far is None or record is None or not self.is_cheaper(record):
            return False
        if not self.far.bring(record, self.near):
            return False
        self._keep(digest)
        return True

    def begin(self, digest: str) -> None:
        """Starts to fetch the blob of a recalled record, which `fetch` then waits for."""
        if not self.near.has(digest):
            self._ahead.begin(digest)

    def uploader(self) -> Uploader | None:
        """The uploader of pending records, of this and earlier builds; None if nothing is
        uploaded."""
        if self.far is None or self.outbox is None or self.signing is None:
            return None
        return Uploader(self.near, self.far, self.outbox, self.signing)

    @property
    def note(self) -> str:
        """Why the remote is not used; empty while it is."""
        return self.far.note if self.far else ""

    def opinion(self, key: str) -> tuple[str, Record | None]:
        """The remote's answer for a key, as a sentence, and the record if it would be used."""
        if self.far is None:
            return "the remote cache is off", None
        verdict = self.verdict(key)
        record = verdict.record
        if record is None:
            return self.note or f"{self.far.address}: {verdict}", None
        sentence = f"{self.far.address}: {verdict}, {record.size:,} bytes"
        if record.seconds is not None:
            predicted = self.far.rates.predicted(record.size)
            sentence += f", {predicted:.1f} s to fetch and {record.seconds:.1f} s to build"
        return sentence, record if self.is_cheaper(record) else None

    # -- what the remote has ---------------------------------------------------------------

    def verdict(self, key: str) -> TrustVerdict:
        """The verdict on the envelope of a key: the stored one if it is trusted, else the far one.
        The near store's own records are not consulted."""
        saved = self.policy.judge(key, self._stored_envelope(key))
        if saved.record is not None or self.far is None:
            return saved
        began = time.monotonic()
        data = self.far.envelope(key)
        verdict = self.policy.judge(key, data)
        if data is not None and verdict.record is None:
            self.far.ledger.waste(time.monotonic() - began, str(verdict))
        if verdict.record is not None and data is not None:
            digest = verdict.record.digest
            with self._lock:
                self._arrived.setdefault(digest, {})[key] = data
            if self.near.has(digest):
                self._keep(digest)
        return verdict

    def stored(self, key: str) -> Record | None:
        """The record of a trusted envelope that is stored here."""
        return self.policy.judge(key, self._stored_envelope(key)).record

    def is_cheaper(self, record: Record) -> bool:
        """Whether fetching the artifact is predicted to take no longer than making it."""
        if self.far is None or record.seconds is None:
            return True
        return pays(self.far.rates.predicted(record.size), record.seconds)

    def _stored_envelope(self, key: str) -> bytes | None:
        try:
            with self._envelope(key).open("rb") as file:
                return file.read(MAX_ENVELOPE_BYTES)
        except OSError:
            return None

    def _keep(self, digest: str) -> None:
        """Stores the envelopes of an artifact that the near store has now."""
        with self._lock:
            envelopes = self._arrived.pop(digest, {})
        for key, data in envelopes.items():
            with suppress(CacheError):
                self.near.write(self._envelope(key), data, flush=False)

    def _envelope(self, key: str) -> Path:
        return envelope_file(self.near.root, key)
