"""Temporary files and folders whose names identify their process.

    .tmp-<place>-<pid>-<start>-<random><suffix>

Pids are reused, by another process or in another container. The place is the boot of a machine and
a namespace of pids in it; the start is the time when the process began, in ticks since that boot.
The three together name one process. A process that this place no longer has is dead. Processes of
other places cannot be checked; their files are removed after a day.
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

FOREIGN_AGE_S = 24 * 3600
FOLDER_PREFIX = "npumake-"  # of temporary folders
BOOT, NAMESPACE = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"

# Some libraries write beside their output file: `..tmp-….hybrid.123`.
_NAME = r"(\.+tmp-|npumake-)(?P<owner>.+)-[0-9a-f]{12}(\..*)?"
_OWNER = r"(?P<place>[0-9a-f]{12})-(?P<pid>\d{1,9})-(?P<start>\d{1,20})"
_own: set[str] = set()  # the temporaries of this process


def temporary_name(suffix: str = "", prefix: str = ".tmp-") -> str:
    """A name that no other process uses."""
    return f"{prefix}{_owner(os.getpid())}-{os.urandom(6).hex()}{suffix}"


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Removes the file or folder at `path`, if any, when the block ends."""
    name = os.fspath(path)
    _own.add(name)
    try:
        yield
    finally:
        _remove(name)
        _own.discard(name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for temporary files of this process only; removed when the block ends."""
    import tempfile  # noqa: PLC0415  # slow to load, and unused in an up-to-date build

    path = Path(tempfile.gettempdir(), temporary_name(prefix=FOLDER_PREFIX))
    with owned(path):
        path.mkdir(mode=0o700)
        yield path


def remove_owned() -> None:
    """Removes the temporaries of this process before it ends. Children that still write may leave
    some for a sweep."""
    for name in list(_own):
        _remove(name)


def sweep(directory: str | Path) -> int:
    """Removes the leftovers of dead processes in `directory`; returns their number.

    Raises nothing: an absent directory has none, and leftovers without write permission stay.
    """
    return _sweep(_entries(directory))


def sweep_below(directory: str | Path) -> int:
    """Likewise in `directory` and every folder below it."""
    entries = _entries(directory)
    inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return _sweep(entries) + sum(sweep_below(folder) for folder in inside)


@cache
def sweep_folders() -> None:
    """Likewise in the system's folder for temporaries; once per process."""
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
    if not entry.name.lstrip(".").startswith(("tmp-", FOLDER_PREFIX)):  # the common case
        return False
    match = re.fullmatch(_NAME, entry.name)
    if not match:
        return False
    owner = re.fullmatch(_OWNER, match["owner"])
    if owner and owner["place"] == _place():
        return _is_dead(int(owner["pid"]), owner["start"])
    if not owner and entry.name.startswith(FOLDER_PREFIX):  # perhaps a folder of the user's
        return False
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > FOREIGN_AGE_S
    except OSError:  # its owner has just renamed it
        return False


def _is_dead(pid: int, start: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's
        pass
    began = _started(pid)
    return began not in (None, start)


def _remove(path: str) -> None:
    """Removes the file or folder; one that cannot be removed stays."""
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
    """The start of a process; "ended" for a zombie, None if the system does not report it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # PID (COMMAND) STATE and the rest, from field 4 on; the start is field 22
            state, *rest = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return "ended" if state in (b"Z", b"X") else rest[18].decode()
