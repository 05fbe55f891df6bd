"""A process that ends when its parent ends, however that ends.

On Linux the kernel signals a process whose parent ends (PR_SET_PDEATHSIG of prctl(2)). Elsewhere a
thread polls for the parent, and commands run without a supervisor.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PDEATHSIG = 1  # PR_SET_PDEATHSIG
SUPERVISOR = Path(__file__).with_name("supervisor.py")
CANNOT_RUN = 127  # exit status of a supervisor, as in a shell
PARENT_POLL_S = 0.2  # if the kernel does not signal


def end_with_parent(parent: int) -> None:
    """From now on this process is killed when its parent `parent` ends."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  # slow to load, and unused in an up-to-date build

        ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_look_for, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def supervised(command: Sequence[str]) -> list[str]:
    """The command that runs `command`, and ends it and all its children with this process.

    Its exit status, signals included, is that of `command`; CANNOT_RUN if that cannot be run.
    SIGTERM ends both; SIGKILL would leave the children of `command`.
    """
    if sys.platform != "linux":
        return [*command]
    # -I -S: it needs no package, so it only loads the interpreter.
    return [sys.executable, "-I", "-S", str(SUPERVISOR), str(os.getpid()), *command]


def run_supervised(
    command: Sequence[str],
    timeout: float | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Runs `command` in `folder` to its end. Raises TimeoutExpired after `timeout` seconds. No
    child process is left in either case."""
    with subprocess.Popen(
        supervised(command),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            output, errors = running.communicate(timeout=timeout)
        except BaseException:
            running.terminate()
            running.communicate()
            raise
    return subprocess.CompletedProcess(command, running.returncode, output, errors)


def _look_for(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os.kill(os.getpid(), signal.SIGKILL)
