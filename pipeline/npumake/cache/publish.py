"""Publishes files whole or not at all.

A file is written under a temporary name on the same file system, flushed to the disk and renamed. A
rename is atomic, so a reader sees the old file or the new one. Files of killed processes are
recognized by their names (npumake.lifetime.temporaries) and swept.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from npumake.cache.folders import CURES, in_the_way
from npumake.errors import CacheError, UnwritableError
from npumake.lifetime.temporaries import owned, temporary_name

WRITABLE = "make its directory writable"
CHUNK_BYTES = 1 << 20  # large enough that hashing dominates, small enough to stay cached

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_OCCUPIED = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EBUSY})
_SHUT = _FORBIDDEN | _OCCUPIED | {errno.ENAMETOOLONG, errno.ELOOP}


@contextmanager
def replacing(path: Path, flush: bool = True) -> Iterator[Path]:
    """A temporary path beside `path`, with its suffix, that becomes `path` when the block ends.

    If the block raises, `path` is unchanged. `flush` as in `settle`. Raises CacheError on a full
    disk, UnwritableError without write permission.
    """
    with scratch(path, path.parent) as temporary:
        yield temporary
        settle(temporary, path, flush)


@contextmanager
def scratch(path: Path, directory: Path) -> Iterator[Path]:
    """A temporary path in `directory` for the later `path`; removed when the block ends.

    Raises CacheError naming `path` on a full or unwritable disk; other errors pass through.
    """
    temporary = directory / temporary_name(path.suffix)
    with _writing(directory, directory, is_file=False):
        directory.mkdir(parents=True, exist_ok=True)
    with _writing(path, directory, only=temporary), owned(temporary):
        yield temporary


def settle(temporary: Path, path: Path, flush: bool = True) -> None:
    """Flushes `temporary` to the disk and renames it to `path`; its directory is created if needed.

    Without `flush` a power failure may damage the file: for those that are verified on every read.
    """
    with _writing(path, path.parent):
        if flush:
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, path)


@contextmanager
def _writing(
    path: Path, directory: Path, only: Path | None = None, is_file: bool = True
) -> Iterator[None]:
    """Full and unwritable disks as CacheError; the latter only for `only`, if set. `path` is a file
    in `directory`, or the directory itself.

    A full disk is always the writer's fault; an unreadable file may be one that the block reads.
    """
    try:
        yield
    except OSError as error:
        is_own = only is None or str(error.filename) == str(only)
        if error.errno in _FULL:
            cure = "free some space"
        elif error.errno in _SHUT and is_own:
            obstacle = in_the_way(directory, path if is_file else None)
            cure = CURES.get(error.errno) or obstacle or WRITABLE
        else:
            raise
        kind = UnwritableError if error.errno in _FORBIDDEN else CacheError
        raise kind(
            f"cannot write {path}: {os.strerror(error.errno).lower()}",
            hint=f"{cure}; nothing was lost, the previous file is intact",
        ) from error


def opened(path: Path) -> BufferedReader:
    """`path`, opened for reading. Raises CacheError without permission, FileNotFoundError when
    absent."""
    try:
        return path.open("rb")
    except PermissionError as error:
        raise CacheError(
            f"cannot read {path}: permission denied", hint="make it readable"
        ) from error


def copied(source: BufferedReader, path: Path) -> tuple[str, int]:
    """Copies `source` to a new file at `path`; returns SHA-256 and size of the copied bytes."""
    sha = hashlib.sha256()
    size = 0
    with path.open("xb") as file:
        while chunk := source.read(CHUNK_BYTES):
            sha.update(chunk)
            size += file.write(chunk)
    return sha.hexdigest(), size
