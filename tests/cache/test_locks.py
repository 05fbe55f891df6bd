"""A lock makes the second wait, and nobody depends on it: real processes, crashes, no locks."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import npumake
from npumake.cache import locks
from npumake.cache.locks import locked, remove_free, turn

ROOT = Path(npumake.__file__).parents[1]
OWNER = """
import sys
from pathlib import Path
from npumake.cache.locks import turn
with turn(Path(sys.argv[1]), lambda: print("waits", flush=True)):
    print("owns", flush=True)
    sys.stdin.readline()
print("done", flush=True)
"""


@contextmanager
def owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that owns the lock until it reads a line."""
    command = [sys.executable, "-c", OWNER, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def release(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / ("a" * 64)


def never() -> None:
    pytest.fail("it waits")


def test_the_second_process_waits_until_the_first_is_done(path: Path) -> None:
    with owner(path) as first:
        assert line(first) == "owns"
        with owner(path) as second:
            assert line(second) == "waits"
            release(first)
            assert line(first) == "done"
            assert line(second) == "owns"
            release(second)
            assert line(second) == "done"
    assert os.listdir(path.parent) == []


def test_a_crash_releases_the_lock(path: Path) -> None:
    with owner(path) as first, owner(path) as second:
        lines = {line(first), line(second)}
        assert lines == {"owns", "waits"}
        for process in (first, second):
            process.kill()
            process.wait()
    with turn(path, never):
        assert path.exists()
    assert not path.exists()


def test_the_lock_that_a_crash_left_is_removed_and_no_other(path: Path) -> None:
    other = path.with_name("b" * 64)
    with owner(path) as alive, owner(other) as dead:
        assert (line(alive), line(dead)) == ("owns", "owns")
        dead.kill()
        dead.wait()
        remove_free(path.parent)
        assert os.listdir(path.parent) == [path.name]


def test_a_stopped_owner_is_not_waited_for(path: Path) -> None:
    waits = []
    with owner(path) as stopped:
        assert line(stopped) == "owns"
        stopped.send_signal(signal.SIGSTOP)
        with turn(path, lambda: waits.append(1), silence=0.2):
            assert waits == [1]
            assert path.exists()
        assert path.exists()


@pytest.mark.slow
def test_an_owner_that_works_for_long_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "RENEWAL_S", 0.05)
    waits = []

    def wait() -> None:
        waits.append(1)

    from threading import Event, Thread

    owns, release_it, order = Event(), Event(), []

    def work() -> None:
        with turn(path, never):
            owns.set()
            release_it.wait()
            order.append("first")

    worker = Thread(target=work)
    worker.start()
    owns.wait()
    Thread(target=lambda: (Event().wait(1.5), release_it.set())).start()
    with turn(path, wait, silence=1.0):  # shorter than the work
        order.append("second")
    worker.join()
    assert order == ["first", "second"]
    assert waits == [1]


def test_without_locks_nobody_waits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")  # as NFS without its lock service

    monkeypatch.setattr(fcntl, "flock", refuse)
    with turn(path, never), turn(path, never):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_has_no_locks(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o555)
    with turn(path, never), turn(path, never):
        pass


def test_a_file_in_the_place_of_the_folder_is_no_lock(path: Path) -> None:
    path.parent.write_bytes(b"")
    with turn(path, never):
        pass
    remove_free(path.parent)


def test_a_lock_is_owned_once(path: Path) -> None:
    first = locked(path)
    assert first is not None
    assert locked(path) is None
    first.close()
    second = locked(path)
    assert second is not None
    second.close()
