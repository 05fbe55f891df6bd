"""Temporary files and folders whose names say which process they belong to.

    .tmp-<place>-<pid>-<start>-<random><suffix>

A pid is used again, by another process or in another container. The place is the boot of a machine
and a namespace of pids in it, the start is when the process began, in ticks since that boot: the
three together name one process. One that this place no longer has is dead. Those of another place
cannot be asked for; what they left goes when it is a day old.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

FOREIGN_AGE_S = 24 * 3600  # seconds
FOLDER_PREFIX = "npumake-"  # how a temporary folder is called, among those of others
BOOT, NAMESPACE = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"

# Some libraries write beside the file that they are to write: `..tmp-….hybrid.123` is of it.
_NAME = r"(\.+tmp-|npumake-)(?P<owner>.+)-[0-9a-f]{12}(\..*)?"
_OWNER = r"(?P<place>[0-9a-f]{12})-(?P<pid>\d{1,9})-(?P<start>\d{1,20})"
_own: set[str] = set()  # the temporaries of this process


def temporary_name(suffix: str = "", prefix: str = ".tmp-") -> str:
    """A name that no other process uses."""
    return f"{prefix}{_owner(os.getpid())}-{os.urandom(6).hex()}{suffix}"


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """The file or folder at `path`, if there is one, is gone when the block ends."""
    name = os.fspath(path)
    _own.add(name)
    try:
        yield
    finally:
        _remove(name)
        _own.discard(name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of this process alone, where temporary files belong; gone when the block ends."""
    import tempfile  # noqa: PLC0415  # slow to load, and a build with nothing to do needs none

    path = Path(tempfile.gettempdir(), temporary_name(prefix=FOLDER_PREFIX))
    with owned(path):
        path.mkdir(mode=0o700)
        yield path


def remove_owned() -> None:
    """Those of this process, which ends. Children that still write may leave some for a sweep."""
    for name in list(_own):
        _remove(name)


def sweep(directory: str | Path) -> int:
    """Remove what dead processes left in `directory`: how many there were.

    Raises nothing: an absent directory holds none, and in one that may not be written they stay.
    """
    return _sweep(_entries(directory))


def sweep_below(directory: str | Path) -> int:
    """The same, and in every folder below it."""
    entries = _entries(directory)
    inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return _sweep(entries) + sum(sweep_below(folder) for folder in inside)


@cache
def sweep_folders() -> None:
    """The same where temporary folders are made; once in a process."""
    import tempfile  # noqa: PLC0415

    sweep(tempfile.gettempdir())


def _sweep(entries: Iterable[os.DirEntry[str]]) -> int:
    dead = [entry.path for entry in entries if _is_leftover(entry)]
    for path in dead:
        _remove(path)
    return len(dead)


def _entries(directory: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_leftover(entry: os.DirEntry[str]) -> bool:
    if not entry.name.lstrip(".").startswith(("tmp-", FOLDER_PREFIX)):  # nearly all of them
        return False
    match = re.fullmatch(_NAME, entry.name)
    if not match:
        return False
    owner = re.fullmatch(_OWNER, match["owner"])
    if owner and owner["place"] == _place():
        return _is_dead(int(owner["pid"]), owner["start"])
    if not owner and entry.name.startswith(FOLDER_PREFIX):  # a name that anybody may choose
        return False
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > FOREIGN_AGE_S
    except OSError:  # its owner has just published it
        return False


def _is_dead(pid: int, start: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's
        pass
    began = _started(pid)
    return began not in (None, start)


def _remove(path: str) -> None:
    """What cannot be removed stays: it is in nobody's way."""
    with suppress(OSError):
        if not os.path.isdir(path) or os.path.islink(path):
            os.unlink(path)
            return
        import shutil  # noqa: PLC0415

        shutil.rmtree(path, ignore_errors=True)


@lru_cache(1)
def _owner(pid: int) -> str:
    return f"{_place()}-{pid}-{_started(pid) or 0}"


@cache
def _place() -> str:
    """One boot of one machine, and a namespace of pids in it."""
    parts = [os.uname().nodename]
    with suppress(OSError), open(BOOT) as file:
        parts.append(file.read())
    with suppress(OSError):
        parts.append(os.readlink(NAMESPACE))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _started(pid: int) -> str | None:
    """When a process began; "ended" where its parent has yet to hear that it has, None where this
    system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # PID (COMMAND) STATE and the rest, which begins with field 4; the start is field 22
            state, *rest = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return "ended" if state in (b"Z", b"X") else rest[18].decode()
