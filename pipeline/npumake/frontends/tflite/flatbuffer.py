"""FlatBuffers from a stranger: every read is checked against the bytes there are.

A table is a position p. The int32 at p says how far before p its vtable lies; the vtable holds
its own size, the table's size, and per field a uint16: the field's distance from p, 0 where the
field has its default. Strings, vectors and other tables are found by a uint32 counted from where
it stands (FlatBuffers, internals). Offsets only point forward, and what is read is either a view
of the file or smaller than it, so no file takes more time or memory than its size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np


class MalformedError(ValueError):
    """The bytes are not what the format says."""


@dataclass(frozen=True)
class Table:
    """A table at `position` of `data`. Fields are read by their number in the schema."""

    data: bytes
    position: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        return cls(data, _number("<I", data, 0))

    def scalar(self, field: int, kind: str, default: Any) -> Any:
        """The number stored as `kind` (of `struct`, little endian)."""
        at = self._at(field)
        return default if at is None else _number(f"<{kind}", self.data, at)

    def table(self, field: int) -> Table:
        """The table in a field; one without fields where there is none."""
        at = self._at(field)
        return NO_TABLE if at is None else Table(self.data, self._target(at))

    def tables(self, field: int) -> list[Table]:
        offsets, start = self._vector(field, "<u4")
        places = start + 4 * np.arange(len(offsets), dtype=np.int64) + offsets
        return [Table(self.data, place) for place in places.tolist()]

    def numbers(self, field: int, dtype: str) -> np.ndarray:
        """The vector in a field, a view of the file; empty where there is none."""
        return self._vector(field, dtype)[0]

    def text(self, field: int) -> str:
        return bytes(self._vector(field, "u1")[0]).decode("utf-8", "replace")

    def _at(self, field: int) -> int | None:
        """Where the field's value stands; None when it is left out."""
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
        """The elements, and where the first stands."""
        at = self._at(field)
        if at is None:
            return np.empty(0, dtype), 0
        start = self._target(at)
        count = _number("<I", self.data, start)
        return view(self.data, start + 4, count, dtype), start + 4


NO_TABLE = Table(b"", 0)


def view(data: bytes, start: int, count: int, dtype: str) -> np.ndarray:
    """`count` numbers from `start` on, read-only. Raises MalformedError beyond the end."""
    if start < 0 or start + count * np.dtype(dtype).itemsize > len(data):
        raise MalformedError(f"{count} numbers at byte {start} reach beyond its end")
    return np.frombuffer(data, dtype, count, start)


def _number(kind: str, data: bytes, at: int) -> Any:
    if at < 0 or at + struct.calcsize(kind) > len(data):
        raise MalformedError(f"a field at byte {at} lies beyond its end")
    return struct.unpack_from(kind, data, at)[0]
