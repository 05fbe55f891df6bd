"""File signatures: a file is not read again while its signature is unchanged.

The signature is s = (size, mtime, ctime, inode). The system sets ctime at every change and no user
can set it back, but its clock ticks every g: a change at time t is stamped c' > t - g. For a file
whose reading began at t0, stamped c, with m(c) > g:

    c < t0 - m(c)   =>   any later change has c' > t0 - g > c, so it shows

A younger stamp proves nothing (git calls such a file racily clean): it is not recorded and the file
is read again next time. The stamp shows g: a clock of whole seconds (ext4 with inodes of 128 bytes,
FAT, some network file systems; g <= 2 s) gives a sub-second part of zero, which is rare otherwise.
Such a clock may be a server's, so m allows some seconds of lag. All others have g <= 10 ms.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from npumake.cache.publish import opened, replacing
from npumake.digest import is_generated, of_bytes
from npumake.errors import CacheError

SECOND_NS = 1_000_000_000
FINE_MARGIN_NS = 20_000_000
COARSE_MARGIN_NS = 10 * SECOND_NS
MAX_READINGS = 5  # of a file that changes meanwhile

_FORMAT = b"npumake file digests 2\n"  # hashed with the table, so that other formats are foreign


class Signature(NamedTuple):
    """A plain file's status; size in bytes, times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def signature_of(path: Path | str) -> Signature | None:
    """The signature of the plain file at `path`, links followed; None if it is absent or
    unreachable."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Signature(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_settled(ctime_ns: int, since_ns: int) -> bool:
    """Whether a file with that ctime, read from `since_ns` on, shows any later change."""
    margin = FINE_MARGIN_NS if ctime_ns % SECOND_NS else COARSE_MARGIN_NS
    return ctime_ns < since_ns - margin


class FileDigests:
    """The SHA-256 of files, stored in the file `table` and trusted by signature.

    An absent, damaged or foreign table counts as empty. With `paranoid` every file is read.
    """

    def __init__(self, table: Path, paranoid: bool = False) -> None:
        self._table = table
        self._paranoid = paranoid
        # Files under the table's grandparent (the checkout) keep their entry when it moves.
        self._base = os.path.join(os.path.abspath(table.parent.parent), "")
        self._signatures = _read_table(table)
        self._fresh: dict[str, list[object]] = {}

    def of(self, path: Path | str) -> str:
        """SHA-256 of the plain file at `path`, read only when its signature is not trusted.

        Raises FileNotFoundError when it is absent or not a plain file, CacheError when it is
        unreadable or keeps changing.
        """
        name = os.fspath(path)
        if not os.path.isabs(name):
            name = os.path.abspath(name)
        key = name.removeprefix(self._base)
        remembered = self._signatures.get(key)
        if remembered and not self._paranoid and tuple(remembered[:4]) == signature_of(name):
            return str(remembered[4])
        signature, digest, since = _hashed(Path(name))
        if is_settled(signature.ctime_ns, since):
            self._signatures[key] = self._fresh[key] = [*signature, digest]
        return digest

    def save(self) -> None:
        """Writes the table if it changed, merged with the entries of other processes."""
        if not self._fresh:
            return
        body = json.dumps(_read_table(self._table) | self._fresh).encode()
        with replacing(self._table) as temporary:
            temporary.write_bytes(f"{of_bytes(_FORMAT + body)}\n".encode() + body)
        self._fresh = {}


def _read_table(table: Path) -> dict[str, list[object]]:
    """{path: [size, mtime_ns, ctime_ns, inode, digest]}; the first line is the seal of the rest."""
    try:
        seal, _, body = table.read_bytes().partition(b"\n")
    except OSError:  # `save` reports it if it matters
        return {}
    if seal != of_bytes(_FORMAT + body).encode():
        return {}
    return json.loads(body)


def _hashed(path: Path) -> tuple[Signature, str, int]:
    """The signature, the digest, and the start of the reading in ns."""
    for _ in range(MAX_READINGS):
        since = time.time_ns()
        before = signature_of(path)
        if before is None or is_generated(path):
            raise FileNotFoundError(errno.ENOENT, "no such plain file", str(path))
        try:
            with opened(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CacheError(f"cannot read {path}: {os.strerror(error.errno or 0)}") from error
        if signature_of(path) == before:
            return before, digest, since
    raise CacheError(f"{path} keeps changing while it is read", hint="wait until it is written")
