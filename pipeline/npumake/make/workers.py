"""Worker: a process that executes one task after another, and reports its own end.

Each has a pipe of its own, so a killed one leaves no lock and no partial message to others. It ends
with this process.
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

FORK = get_context("fork")  # tasks hold functions, which only fork can pass on
ENDS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 0.5  # seconds


class WorkerEnded(Exception):  # noqa: N818  # an event; the runner makes an error of it
    """A worker ended before its task; `signal` names the signal that ended it, if any."""

    def __init__(self, status: int) -> None:
        self.signal = _name(-status) if status < 0 else None
        super().__init__(self.signal or f"exit status {status}")


class Worker:
    """A process. `execute` returns the result of a job, `finish` runs when there are no more.

    `node` is the present work, None while idle. `siblings` are the earlier workers.
    """

    def __init__(
        self,
        execute: Callable[[Any], Any],
        finish: Callable[[], None],
        siblings: Sequence[Worker],
    ) -> None:
        self.node: Any = None
        self._pipe, child_pipe = FORK.Pipe()
        open_pipes = [self._pipe, *(worker._pipe for worker in siblings)]
        self._process = FORK.Process(
            target=_work, args=(execute, finish, child_pipe, open_pipes, os.getpid())
        )
        # Until it has its own handlers, a signal would run those of this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        child_pipe.close()
        self._end = _watched(self._process)

    def begin(self, node: Any, job: Any) -> None:
        self.node = node
        with suppress(ConnectionError):  # it has ended: `result` raises
            self._pipe.send(job)

    def result(self) -> Any:
        """The result of the job. Raises WorkerEnded."""
        with suppress(EOFError, ConnectionError):
            if self._pipe.poll():
                return self._pipe.recv()
        self._process.join()
        status = self._process.exitcode or 0
        if -status in ENDS:
            time.sleep(GRACE_S)  # a signal to the whole group also reaches this process
        raise WorkerEnded(status)

    def close(self) -> None:
        """Lets it finish, and waits for it."""
        self._pipe.close()
        self._process.join()

    def kill(self) -> None:
        self.node = None
        self._process.kill()
        self._process.join()


def unpacked(data: bytes) -> Any:
    """Unpickles a task that doit created after the workers."""
    return ForkingPickler.loads(data)


def ready(workers: Iterable[Worker]) -> list[Worker]:
    """Waits until a worker has a result or has ended; returns these workers."""
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
    signal.set_wakeup_fd(-1)  # its reader is in the parent process
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
    for other in others:
        other.close()
    # A parent that is killed closes its end before the kernel ends this process.
    while True:
        try:
            job = pipe.recv()
        except (EOFError, ConnectionError):
            finish()
            return
        result = execute(job)
        try:
            pipe.send(result)
        except ConnectionError:
            return


def _watched(process: Any) -> int:
    """A descriptor that becomes readable when the process ends. multiprocessing's own is a pipe,
    which forked children would keep open."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return int(process.sentinel)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
