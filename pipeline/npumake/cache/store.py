"""The interface of a store: six verbs over blobs and records.

A blob is bytes; its name is their SHA-256. A record holds the result of a key document; its name is
the SHA-256 of the canonical document. Both can be verified from their names.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from npumake.digest import Json, canonical, of_document, plain
from npumake.errors import CacheError

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Record:
    """The key document, the SHA-256 and size in bytes of its blob, and the seconds to build it;
    None if they were not measured."""

    document: Json
    digest: str
    size: int
    seconds: float | None = None


class Store(Protocol):
    """Every name is 64 lower-case hexadecimal digits; others raise CacheError.

    Absence is a value, and so is damage: a file that does not match its name is quarantined and
    absent. A store that cannot be read or written raises CacheError.
    """

    def has(self, digest: str) -> bool:
        """Whether a blob of that name exists; its bytes are not verified."""
        ...

    def was_damaged(self, name: str) -> bool:
        """Whether a blob or the record of a key was quarantined under this name."""
        ...

    def fetch(self, digest: str, path: Path) -> bool:
        """Publishes the verified blob at `path`; False, with `path` unchanged, when absent."""
        ...

    def put(self, path: Path) -> str:
        """Copies the file in; returns the digest of the copied bytes. Raises FileNotFoundError."""
        ...

    def recall(self, key: str) -> Record | None:
        """The record of a key; its blob may be missing."""
        ...

    def remember(self, key: str, record: Record) -> None:
        """Stores the record in place of an earlier one. Raises ValueError if `key` is not its
        own."""
        ...


def checked(name: str) -> str:
    """`name` itself, if it is a SHA-256 and cannot lead out of a store. Raises CacheError."""
    if not _SHA256.fullmatch(name):
        raise CacheError(f"`{name}` is not a SHA-256", hint="64 hexadecimal digits name a blob")
    return name


def bytes_of(key: str, record: Record) -> bytes:
    """The record as stores hold it. Raises ValueError if `key` does not name its document."""
    if of_document(record.document) != checked(key):
        raise ValueError(f"{key} does not name this document")
    checked(record.digest)
    return canonical({**plain(record), "seal": _seal(key, record)})


def record_in(key: str, data: bytes) -> Record | None:
    """The record in `data`; None when it is damaged or belongs to another key."""
    try:
        entry = json.loads(data)
        record = Record(entry["document"], entry["digest"], entry["size"], entry.get("seconds"))
        is_sealed = of_document(record.document) == key and entry["seal"] == _seal(key, record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record if is_sealed and is_sound(record) else None


def is_sound(record: Record) -> bool:
    """Whether a foreign record has a valid digest, size and time."""
    digest, size, seconds = record.digest, record.size, record.seconds
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        return False
    if type(size) is not int or size < 0:
        return False
    return seconds is None or (type(seconds) in (int, float) and 0 <= seconds < math.inf)


def _seal(key: str, record: Record) -> str:
    """The seal binds the blob to the key: a record of another blob is refused."""
    bound = {"key": key, "digest": record.digest, "size": record.size}
    return of_document(bound if record.seconds is None else {**bound, "seconds": record.seconds})
