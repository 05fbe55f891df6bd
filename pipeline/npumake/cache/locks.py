"""A lock per key: of two builds of one artifact, the second waits and takes the result of the
first.

A lock is flock(2) on a file, so a crash releases it. Its owner renews the time of the file, for
waiting builds: an owner that is stopped, or on a machine that is gone, does not renew it.

No lock is needed for correctness. If locks do not work, or an owner shows no sign of life, both
build, and the store gets the same bytes twice.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

POLL_S = 0.05
RENEWAL_S = 5.0
SILENCE_S = 60.0  # without a renewal, after which the others stop waiting


def locked(path: Path) -> BufferedWriter | None:
    """The file at `path`, created if absent, opened and locked; None while another owns the lock.

    Closing it releases the lock. Raises OSError if locks do not work.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, file.fileno()):
                return file
        except BlockingIOError:
            file.close()
            return None
        except BaseException:
            file.close()
            raise
        file.close()  # its last owner removed it meanwhile


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def turn(path: Path, wait: Callable[[], None], silence: float = SILENCE_S) -> Iterator[None]:
    """Owns the lock `path` inside the block if locks work here.

    Calls `wait` once if another process owns it, then waits: until it is released, or was not
    renewed for `silence` seconds.
    """
    lock = _awaited(path, wait, silence)
    if lock is None:
        yield
        return
    released = threading.Event()
    with lock:
        renewal = threading.Thread(target=_renew, args=(lock.fileno(), released), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            released.set()
            renewal.join()
            with suppress(OSError):
                path.unlink()


def remove_free(folder: Path) -> None:
    """Removes the locks that crashed processes left in `folder`."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            lock = locked(folder / name)
            if lock is not None:
                with lock:
                    (folder / name).unlink()


def _awaited(path: Path, wait: Callable[[], None], silence: float) -> BufferedWriter | None:
    renewed: int | None = None
    since = 0.0
    while True:
        try:
            lock = locked(path)
            latest = None if lock else os.stat(path).st_mtime_ns
        except FileNotFoundError:  # released just now
            continue
        except OSError:
            return None
        if lock is not None:
            return lock
        if renewed is None:
            wait()
        if latest != renewed:
            renewed, since = latest, time.monotonic()
        elif time.monotonic() - since > silence:
            return None
        time.sleep(POLL_S)


def _renew(descriptor: int, released: threading.Event) -> None:
    while not released.wait(RENEWAL_S):
        with suppress(OSError):
            os.utime(descriptor)
