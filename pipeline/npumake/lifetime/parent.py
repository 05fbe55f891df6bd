"""A process that ends when the one that started it ends, however that ends.

On Linux the kernel sends a signal to a process whose parent ends (PR_SET_PDEATHSIG of prctl(2)).
Elsewhere a thread looks for its parent, and a command is run without a supervisor.
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
CANNOT_RUN = 127  # the exit status of a supervisor, as a shell has it
PARENT_POLL_S = 0.2  # seconds between two looks for the parent, where the kernel does not tell


def end_with_parent(parent: int) -> None:
    """From now on this process is killed when `parent`, whose child it is, ends."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  # slow to load, and a build with nothing to do needs none

        ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_look_for, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before the kernel was asked
        os.kill(os.getpid(), signal.SIGKILL)


def supervised(command: Sequence[str]) -> list[str]:
    """The command that runs `command`, and ends it and all that it starts with this process.

    Its exit status, signals included, is that of `command`; CANNOT_RUN where that cannot be run.
    It ends both by SIGTERM; SIGKILL would leave what `command` has started.
    """
    if sys.platform != "linux":
        return [*command]
    # -I -S: it needs no package, and loads in the time that an interpreter takes.
    return [sys.executable, "-I", "-S", str(SUPERVISOR), str(os.getpid()), *command]


def run_supervised(
    command: Sequence[str],
    timeout: float | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """`command`, run in `folder` to its end. Raises TimeoutExpired after `timeout` seconds. Then
    too nothing that it started is left."""
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
