"""Runs a command; ends it and all its children when the calling process ends. Linux.

    python -I -S supervisor.py PARENT COMMAND...

A compiler may be a script that starts a program: ending the script alone would leave that running.
As a subreaper (PR_SET_CHILD_SUBREAPER) this process stays the ancestor of all processes below it,
and finds them in /proc. Processes that the command leaves running end with it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from contextlib import suppress

PDEATHSIG, SUBREAPER = 1, 36  # of prctl(2)
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CANNOT_RUN = 127
MAX_ROUNDS, PAUSE_S = 200, 0.01  # of the search for running processes


def main(parent: int, command: list[str]) -> int:
    """The exit status of the command. A signal that ended it also ends this process."""
    prctl = ctypes.CDLL(None).prctl
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    prctl(SUBREAPER, 1)
    prctl(PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the call
        return 128 + signal.SIGTERM
    child = os.fork()
    if child == 0:
        prctl(PDEATHSIG, signal.SIGKILL)
        _become(command)
    _, status = os.waitpid(child, 0)
    _end_descendants()
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command wrote its own core
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def _become(command: list[str]) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(CANNOT_RUN)


def _end(number: int, _: object) -> None:
    _end_descendants()
    os._exit(128 + number)


def _end_descendants() -> None:
    for _ in range(MAX_ROUNDS):
        if not _has_children():
            return
        for process in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE_S)


def _has_children() -> bool:
    """Whether children remain. Ended ones are reaped: orphans below this process become its
    children."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _descendants() -> list[int]:
    parents = _parents()
    processes = [os.getpid()]
    for ancestor in processes:  # the list grows in the loop
        processes += [process for process, parent in parents.items() if parent == ancestor]
    return processes[1:]


def _parents() -> dict[int, int]:
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # PID (COMMAND) STATE PARENT ...; the command may hold any character
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return parents


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
