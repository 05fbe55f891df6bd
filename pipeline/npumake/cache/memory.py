"""A store in three dicts, for tests and experiments."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from npumake.cache.publish import opened, replacing
from npumake.cache.store import Record, bytes_of, checked, record_in
from npumake.digest import of_bytes


@dataclass
class MemoryStore:
    """The verbs of `Store`. Records are stored as bytes, so they pass the same checks."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    records: dict[str, bytes] = field(default_factory=dict)
    quarantine: dict[str, bytes] = field(default_factory=dict)

    def has(self, digest: str) -> bool:
        return checked(digest) in self.blobs

    def was_damaged(self, name: str) -> bool:
        return checked(name) in self.quarantine or f"{name}.json" in self.quarantine

    def fetch(self, digest: str, path: Path) -> bool:
        data = self.blobs.get(checked(digest))
        if data is None:
            return False
        if of_bytes(data) != digest:
            self.quarantine[digest] = data
            self.blobs.pop(digest, None)
            return False
        with replacing(path) as temporary:
            temporary.write_bytes(data)
        return True

    def put(self, path: Path) -> str:
        with opened(path) as file:
            data = file.read()
        digest = of_bytes(data)
        self.blobs[digest] = data
        return digest

    def recall(self, key: str) -> Record | None:
        data = self.records.get(checked(key))
        if data is None:
            return None
        record = record_in(key, data)
        if record is None:
            self.quarantine[f"{key}.json"] = data
            self.records.pop(key, None)
        return record

    def remember(self, key: str, record: Record) -> None:
        self.records[key] = bytes_of(key, record)
