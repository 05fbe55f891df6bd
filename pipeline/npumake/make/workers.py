"""Worker: a process that executes one task after the other, and what becomes of it.

Each has a pipe of its own, so that a killed one holds no lock and leaves no half message that
others wait for. It ends with this process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

from npumake.lifetime.parent import end_with_parent

FORK = get_context("fork")  # tasks hold functions, which no other way of starting takes along
ENDS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 0.5  # seconds


class WorkerEnded(Exception):  # noqa: N818  # what happened, and the runner says what it means
    """A worker ended before its task: `signal` is the name of what ended it, if one did."""

    def __init__(self, status: int) -> None:
        self.signal = _name(-status) if status < 0 else None
        super().__init__(self.signal or f"exit status {status}")


class Worker:
    """`execute` gives the result of a job, `finish` is called when there are no more.

    `node` is what it works at, None while it waits. `siblings` are those started before.
    """

    def __init__(
        self,
        execute: Callable[[Any], Any],
        finish: Callable[[], None],
        siblings: Sequence[Worker],
    ) -> None:
        self.node: Any = None
        self._pipe, theirs = FORK.Pipe()
        ours = [self._pipe, *(worker._pipe for worker in siblings)]
        self._process = FORK.Process(
            target=_work, args=(execute, finish, theirs, ours, os.getpid())
        )
        # Until it has handlers of its own a signal would be taken for one to this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._end = _watched(self._process)

    def begin(self, node: Any, job: Any) -> None:
        self.node = node
        with suppress(ConnectionError):  # it has ended: `result` says so
            self._pipe.send(job)

    def result(self) -> Any:
        """Raises Ended."""
        with suppress(EOFError, ConnectionError):
            if self._pipe.poll():
                return self._pipe.recv()
        self._process.join()
        status = self._process.exitcode or 0
        if -status in ENDS:
            time.sleep(GRACE_S)  # where the whole group is to end, this process is told so itself
        raise WorkerEnded(status)

    def close(self) -> None:
        """Let it finish, and wait for it."""
        self._pipe.close()
        self._process.join()

    def kill(self) -> None:
        self.node = None
        self._process.kill()
        self._process.join()


def unpacked(data: bytes) -> Any:
    """A task that doit has packed because it was created after the workers were."""
    return ForkingPickler.loads(data)


def ready(workers: Iterable[Worker]) -> list[Worker]:
    """Waits until a worker has a result, or has ended: those that do."""
    sources: dict[Any, Worker] = {}
    for worker in workers:
        sources |= {worker._pipe: worker, worker._end: worker}
    return list(dict.fromkeys(sources[source] for source in wait(sources)))


def _work(
    execute: Callable[[Any], Any],
    finish: Callable[[], None],
    pipe: Connection[Any, Any],
    others: Iterable[Connection[Any, Any]],
    parent: int,
) -> None:
    end_with_parent(parent)
    signal.set_wakeup_fd(-1)  # what reads it is not in this process
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
    for other in others:
        other.close()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            finish()
            return
        pipe.send(execute(job))


def _watched(process: Any) -> int:
    """What can be read from when the process has ended. multiprocessing's own is a pipe, which
    whatever the process has forked would keep open."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return int(process.sentinel)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
