"""Reads an archive (npumake.cache.archive), member by member, and stores the accepted ones."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from npumake.cache.archive import BLOCK_BYTES, FORMAT, HEADER, MEMBER
from npumake.cache.local import LocalStore
from npumake.cache.publish import CHUNK_BYTES, opened, scratch
from npumake.cache.remote.envelope import MAX_ENVELOPE_BYTES
from npumake.cache.remote.trust import TrustVerdict
from npumake.cache.store import Record
from npumake.errors import CacheError
from npumake.progress import report

MAX_HEADER_BYTES = 4096
MAX_PENDING_BYTES = 64 << 20  # of the envelopes of one artifact

JudgeEnvelope = Callable[[str, bytes], TrustVerdict]  # of a key
KeepEnvelope = Callable[[str, bytes, Record], None]  # its artifact is stored


class Member(NamedTuple):
    """`kind` is `ac` or `cas`; the size is in bytes."""

    kind: str
    name: str
    size: int


class _Accepted(NamedTuple):
    key: str
    data: bytes
    record: Record


@dataclass
class Arrivals:
    """The imported artifacts, sizes in bytes; `refused` gives the reason by key."""

    records: int = 0
    artifacts: int = 0
    size: int = 0
    refused: dict[str, str] = field(default_factory=dict)


def read_archive(
    path: Path, store: LocalStore, judge: JudgeEnvelope, keep: KeepEnvelope
) -> Arrivals:
    """Stores the accepted contents. Raises CacheError for a damaged archive; artifacts that are
    complete before the damage are stored then."""
    arrivals = Arrivals()
    pending: list[_Accepted] = []
    numbers = {"ac": 0, "cas": 0}
    with _opened(path) as file:
        reader = _Reader(file, path)
        expected = reader.header()
        for member in reader.members():
            report("unpacking", file.tell(), reader.length)
            numbers[member.kind] += 1
            if member.kind == "ac":
                pending += _accepted(reader, member, judge, arrivals)
                if sum(len(entry.data) for entry in pending) > MAX_PENDING_BYTES:
                    raise reader.damaged("it has too many records of one artifact")
                continue
            _store(reader, member, store, pending)
            for entry in pending:
                keep(*entry)
            arrivals.records += len(pending)
            arrivals.artifacts += bool(pending)
            arrivals.size += member.size if pending else 0
            pending = []
        if pending or [*numbers.values()] != expected:
            raise reader.damaged("its content differs from its header")
    return arrivals


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = opened(path)
    except OSError as error:
        raise CacheError(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    with file:
        yield file


def _accepted(
    reader: _Reader, member: Member, judge: JudgeEnvelope, arrivals: Arrivals
) -> list[_Accepted]:
    """The envelope, if it is accepted."""
    if member.size > MAX_ENVELOPE_BYTES:
        raise reader.damaged("it has a record that is too large")
    data = reader.read(member.size)
    verdict = judge(member.name, data)
    if verdict.record is None:
        arrivals.refused[member.name] = str(verdict)
        return []
    return [_Accepted(member.name, data, verdict.record)]


def _store(reader: _Reader, member: Member, store: LocalStore, pending: list[_Accepted]) -> None:
    """Stores an artifact, verified. One whose records were all refused is skipped."""
    named = {(entry.record.digest, entry.record.size) for entry in pending}
    if not named:
        return
    if named != {(member.name, member.size)}:
        raise reader.damaged("it has an artifact that its records do not name")
    hashed, left = sha256(), member.size
    with scratch(store.blob(member.name), store.root / "scratch") as temporary:
        with temporary.open("xb") as copy:
            while left:
                chunk = reader.read(min(left, CHUNK_BYTES))
                hashed.update(chunk)
                left -= copy.write(chunk)
        if hashed.hexdigest() != member.name:
            raise reader.damaged("it has an artifact with wrong bytes")
        store.adopt(temporary, member.name)


class _Reader:
    """The members of an archive in their order."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self.length = path.stat().st_size

    def damaged(self, what: str) -> CacheError:
        hint = "the artifacts before the damage are stored; copy the file again"
        return CacheError(f"the archive is damaged: {what}", str(self._path), hint)

    def header(self) -> list[int]:
        """The numbers of records and of artifacts. Raises CacheError."""
        info = self._info()
        if info is None or info.name != HEADER or info.size > MAX_HEADER_BYTES:
            raise CacheError("not an archive of npumake cache export", str(self._path))
        try:
            header = json.loads(self.read(info.size))
            format_version, numbers = header["format"], [header["records"], header["artifacts"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self.damaged("its header is not JSON") from None
        if format_version != FORMAT:
            hint = f"this version reads format {FORMAT}"
            raise CacheError("an archive of another version", str(self._path), hint)
        self._skip_padding(info.size)
        return numbers

    def members(self) -> Iterator[Member]:
        """Each member, with the file at its first byte. Raises CacheError."""
        while (info := self._info()) is not None:
            match = MEMBER.fullmatch(info.name)
            if match is None:
                raise self.damaged(f"it has a member of another name, {info.name[:80]!r}")
            start = self._file.tell()
            if info.size > self.length - start:
                raise self.damaged("it ends early")
            yield Member(match["kind"], match["name"], info.size)
            self._file.seek(start + info.size)
            self._skip_padding(info.size)

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise self.damaged("it ends early")
        return data

    def _info(self) -> tarfile.TarInfo | None:
        """The next header; None at the end. Extended headers are refused, as links are."""
        block = self.read(BLOCK_BYTES)
        if block == bytes(BLOCK_BYTES):
            return None
        try:
            info = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError):
            raise self.damaged("it is not a tar file") from None
        if info.type != tarfile.REGTYPE or info.size < 0:
            raise self.damaged(f"{info.name[:80]!r} is not a plain file")
        return info

    def _skip_padding(self, size: int) -> None:
        self._file.seek(-size % BLOCK_BYTES, 1)
