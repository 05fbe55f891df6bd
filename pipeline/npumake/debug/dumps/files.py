"""Lists and reads the files of a dump.

Files are untrusted: their size is bounded, they are inside the folder, and a header cannot request
more memory than the file has bytes.
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

BARE = (".bin", ".raw", ".dat")  # raw values without a header
TEXT = (".txt", ".tensor")  # values as text, as Vivante's tools write them
SUFFIXES = (".npy", *BARE, *TEXT)
ARCHIVE = ".npz"
MAX_FILES = 20_000
MAX_FILE_BYTES = 1 << 28  # of one file
MAX_FOLDER_DEPTH = 8  # below each other
_ANY = InputSpec((), "")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class DumpFile:
    """A file of the dump, or a member of an archive. `name` is its path inside the dump without
    suffix, with `/` between folders."""

    path: Path
    name: str
    suffix: str
    size: int
    member: str = ""

    @property
    def display_name(self) -> str:
        return f"{self.path.name}:{self.member}" if self.member else self.path.name


def dump_files(folder: Path) -> list[DumpFile]:
    """Every data file below the folder, sorted by name.

    Raises ProjectError for a missing folder, a link that leads out of it, and too many files.
    """
    if not folder.is_dir():
        raise ProjectError("no such folder", str(folder), "--dump takes the folder of the files")
    files = [file for path in _paths(folder) for file in _opened(path, folder)]
    if len(files) > MAX_FILES:
        raise ProjectError(f"more than {MAX_FILES} files", str(folder))
    return sorted(files, key=lambda file: (file.name, file.suffix))


def content(path: Path) -> bytes:
    """The bytes of a file of the dump. Raises ProjectError if it is too large or unreadable."""
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ProjectError("not a regular file", str(path))
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ProjectError(f"cannot be read: {error.strerror}", str(path)) from error
    if len(data) > MAX_FILE_BYTES:
        raise ProjectError(f"more than {MAX_FILE_BYTES} bytes", str(path))
    return data


def array(file: DumpFile) -> np.ndarray | None:
    """The array of a file with a header or of text; None for raw values.

    Raises ProjectError for a damaged file, and for values that are not numbers.
    """
    if file.suffix in BARE:
        return None
    data = _member(file) if file.member else content(file.path)
    if file.suffix in TEXT:
        return _digits(data, file)
    values = npy(data, str(file.path), Files(), _ANY)
    if values.dtype.kind not in "biuf":
        raise ProjectError(f"{values.dtype} is not a numeric type", str(file.path))
    return values


def _paths(folder: Path) -> Iterator[Path]:
    root, count = folder.resolve(), 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < MAX_FOLDER_DEPTH else []
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() not in (*SUFFIXES, ARCHIVE):
                continue
            if not path.resolve().is_relative_to(root):
                raise ProjectError("a link that leads out of the dump", str(path), "copy the file")
            count += 1
            if count > MAX_FILES:
                raise ProjectError(f"more than {MAX_FILES} files", str(folder))
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
    for entry in entries[: MAX_FILES + 1]:
        member = entry.filename.removesuffix(".npy")
        name = member.lstrip("/")  # as exporters of PyTorch begin the names of tensors
        yield DumpFile(path, name, ".npy", entry.file_size, member)


def _member(file: DumpFile) -> bytes:
    """The bytes of one member of an archive. Raises ProjectError for a damaged one."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = (f"{file.member}.npy", file.member)
            entry = next(info for info in archive.infolist() if info.filename in names)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ProjectError("a .npz file with an unusual compression", str(file.path))
            with archive.open(entry) as member:
                data = member.read(MAX_FILE_BYTES + 1)
    except _DAMAGE as error:
        raise ProjectError(f"not a .npz file: {error}", str(file.path)) from error
    if len(data) > MAX_FILE_BYTES:
        raise ProjectError(f"`{file.member}` has more than {MAX_FILE_BYTES} bytes", str(file.path))
    return data


def _digits(data: bytes, file: DumpFile) -> np.ndarray:
    """Numbers separated by whitespace or commas. Raises ProjectError for anything else."""
    words = data.replace(b",", b" ").split()
    try:
        values = np.array(words, dtype="S32").astype(np.float64) if words else np.empty(0)
    except ValueError as error:
        raise ProjectError(f"not a file of numbers: {error}", str(file.path)) from error
    whole = not any(b"." in w or b"e" in w.lower() or b"n" in w.lower() for w in words)
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0) < 2**53 else values
