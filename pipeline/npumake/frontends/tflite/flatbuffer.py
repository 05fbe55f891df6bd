"""Reads untrusted FlatBuffers: every read is bounds-checked.

A table is a position p. The int32 at p is the distance back to its vtable. The vtable holds its own
size, the table's size, and per field a uint16: the field's offset from p, 0 for the default.
Strings, vectors and tables are referenced by a uint32 relative to its own position (FlatBuffers,
internals). Offsets only point forward, and every result is a view of the file or smaller, so time
and memory are bounded by the file's size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np


class MalformedError(ValueError):
    """The bytes violate the format."""


@dataclass(frozen=True)
class FlatTable:
    """A table at `position` of `data`. Fields are identified by their number in the schema."""

    data: bytes
    position: int

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        return cls(data, _number("<I", data, 0))

    def scalar(self, field: int, kind: str, default: Any) -> Any:
        """The number stored as `kind` (of `struct`, little endian)."""
        at = self._at(field)
        return default if at is None else _number(f"<{kind}", self.data, at)

    def table(self, field: int) -> FlatTable:
        """The table in a field; NO_TABLE if absent."""
        at = self._at(field)
        return NO_TABLE if at is None else FlatTable(self.data, self._target(at))

    def tables(self, field: int) -> list[FlatTable]:
        offsets, start = self._vector(field, "<u4")
        places = start + 4 * np.arange(len(offsets), dtype=np.int64) + offsets
        return [FlatTable(self.data, place) for place in places.tolist()]

    def numbers(self, field: int, dtype: str) -> np.ndarray:
        """The vector in a field, as a view of the file; empty if absent."""
        return self._vector(field, dtype)[0]

    def text(self, field: int) -> str:
        return bytes(self._vector(field, "u1")[0]).decode("utf-8", "replace")

    def _at(self, field: int) -> int | None:
        """Position of the field's value; None if absent."""
        if self is NO_TABLE:
            return None
        vtable = self.position - _number("<i", self.data, self.position)
        slot = 4 + 2 * field
        if slot + 2 > _number("<H", self.data, vtable):
            return None
        distance = _number("<H", self.data, vtable + slot)
        return self.position + distance if distance else None

    def _target(self, at: int) -> int:
        return at + int(_number("<I", self.data, at))

    def _vector(self, field: int, dtype: str) -> tuple[np.ndarray, int]:
        """Number of elements, and the position of the first."""
        at = self._at(field)
        if at is None:
            return np.empty(0, dtype), 0
        start = self._target(at)
        count = _number("<I", self.data, start)
        return view(self.data, start + 4, count, dtype), start + 4


NO_TABLE = FlatTable(b"", 0)


def view(data: bytes, start: int, count: int, dtype: str) -> np.ndarray:
    """`count` numbers from `start` on, read-only. Raises MalformedError beyond the end."""
    if start < 0 or start + count * np.dtype(dtype).itemsize > len(data):
        raise MalformedError(f"{count} numbers at byte {start} reach beyond the end of the file")
    return np.frombuffer(data, dtype, count, start)


def _number(kind: str, data: bytes, at: int) -> Any:
    if at < 0 or at + struct.calcsize(kind) > len(data):
        raise MalformedError(f"a field at byte {at} is beyond the end of the file")
    return struct.unpack_from(kind, data, at)[0]
