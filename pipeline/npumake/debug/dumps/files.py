"""The files of a dump: which there are, and their numbers.

A file is untrusted: its size is bounded, it lies inside the folder, and a header takes no more
memory than the file has bytes.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npumake.data.formats import InputSpec, npy
from npumake.errors import ProjectError
from npumake.project.sections import Files

BARE = (".bin", ".raw", ".dat")  # numbers without a header
TEXT = (".txt", ".tensor")  # numbers as digits, as Vivante's tools write them
SUFFIXES = (".npy", *BARE, *TEXT)
ARCHIVE = ".npz"
MOST_FILES = 20_000
MAX_MEMBER_BYTES = 1 << 28  # of one file
MOST_FOLDERS = 8  # below each other
_ANY = InputSpec((), "")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class DumpFile:
    """A file of the dump, or a member of an archive. `name` is the path inside the dump without
    the suffix, `/` between folders."""

    path: Path
    name: str
    suffix: str
    size: int
    member: str = ""

    @property
    def shown(self) -> str:
        return f"{self.path.name}:{self.member}" if self.member else self.path.name


def dump_files(folder: Path) -> list[DumpFile]:
    """Every file of numbers below the folder, sorted by name.

    Raises ProjectError for no folder, a link that leads out of it, and too many files.
    """
    if not folder.is_dir():
        raise ProjectError("no such folder", str(folder), "--dump takes the folder of the files")
    found = [each for path in _paths(folder) for each in _opened(path, folder)]
    if len(found) > MOST_FILES:
        raise ProjectError(f"more than {MOST_FILES} files", str(folder))
    return sorted(found, key=lambda each: (each.name, each.suffix))


def content(path: Path) -> bytes:
    """The bytes of a file of the dump. Raises ProjectError where it is too large or unreadable."""
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ProjectError("not a regular file", str(path))
            data = file.read(MAX_MEMBER_BYTES + 1)
    except OSError as error:
        raise ProjectError(f"cannot be read: {error.strerror}", str(path)) from error
    if len(data) > MAX_MEMBER_BYTES:
        raise ProjectError(f"more than {MAX_MEMBER_BYTES} bytes", str(path))
    return data


def array(file: DumpFile) -> np.ndarray | None:
    """What a file with a header or of digits holds; None for bare numbers.

    Raises ProjectError for a damaged file, and for values that are no numbers.
    """
    if file.suffix in BARE:
        return None
    data = _member(file) if file.member else content(file.path)
    if file.suffix in TEXT:
        return _digits(data, file)
    found = npy(data, str(file.path), Files(), _ANY)
    if found.dtype.kind not in "biuf":
        raise ProjectError(f"{found.dtype} is no type of numbers", str(file.path))
    return found


def _paths(folder: Path) -> Iterator[Path]:
    root, count = folder.resolve(), 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < MOST_FOLDERS else []
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() not in (*SUFFIXES, ARCHIVE):
                continue
            if not path.resolve().is_relative_to(root):
                raise ProjectError("a link that leads out of the dump", str(path), "copy the file")
            count += 1
            if count > MOST_FILES:
                raise ProjectError(f"more than {MOST_FILES} files", str(folder))
            if path.is_file():
                yield path


def _opened(path: Path, folder: Path) -> Iterator[DumpFile]:
    suffix = path.suffix.lower()
    name = path.relative_to(folder).as_posix()[: -len(suffix)]
    if suffix != ARCHIVE:
        yield DumpFile(path, name, suffix, path.stat().st_size)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except _DAMAGE as error:
        raise ProjectError(f"not a .npz file: {error}", str(path)) from error
    for entry in entries[: MOST_FILES + 1]:
        member = entry.filename.removesuffix(".npy")
        yield DumpFile(path, member, ".npy", entry.file_size, member)


def _member(file: DumpFile) -> bytes:
    """Of an archive; the rest of it is not read. Raises ProjectError for a damaged one."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = (f"{file.member}.npy", file.member)
            entry = next(each for each in archive.infolist() if each.filename in names)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ProjectError("a .npz file with an unusual compression", str(file.path))
            with archive.open(entry) as member:
                data = member.read(MAX_MEMBER_BYTES + 1)
    except _DAMAGE as error:
        raise ProjectError(f"not a .npz file: {error}", str(file.path)) from error
    if len(data) > MAX_MEMBER_BYTES:
        raise ProjectError(
            f"`{file.member}` has more than {MAX_MEMBER_BYTES} bytes", str(file.path)
        )
    return data


def _digits(data: bytes, file: DumpFile) -> np.ndarray:
    """Numbers between spaces, commas or lines. Raises ProjectError where one is no number."""
    words = data.replace(b",", b" ").split()
    try:
        values = np.array(words, dtype="S32").astype(np.float64) if words else np.empty(0)
    except ValueError as error:
        raise ProjectError(f"not a file of numbers: {error}", str(file.path)) from error
    whole = not any(b"." in w or b"e" in w.lower() or b"n" in w.lower() for w in words)
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0) < 2**53 else values
