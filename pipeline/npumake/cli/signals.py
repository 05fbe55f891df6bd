"""SIGINT and SIGTERM end this process within a second.

Python runs signal handlers only between bytecodes of the main thread, which may be in a library or
an import for long. Therefore a thread waits for signals, prints one line, removes this process's
temporaries and exits. Published files are always complete (npumake.cache.publish). Workers and
compilers end with this process (npumake.lifetime).

The module imports little, because it runs before all other imports.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from contextlib import suppress

LINE = "interrupted: finished artifacts are kept, and the next run continues"
PATIENCE = 0.5  # seconds to wait for a blocked terminal


def end_at_signals() -> None:
    """Starts the thread; call it from the main thread. Ignored signals stay ignored, as in a
    script's background jobs."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    # Unlike threading.Thread, this does not wait until the thread runs.
    _thread.start_new_thread(_wait, (readable,))
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave_it)


def _leave_it(*_: object) -> None:
    """Leaves the signal to the thread; without a handler Python would not wake it."""


def _wait(readable: int) -> None:
    while True:
        for number in os.read(readable, 1):
            if number in (signal.SIGINT, signal.SIGTERM):
                _end(number)


def _end(number: int) -> None:
    status = 128 + number  # as a shell has it
    _thread.start_new_thread(_end_late, (status,))
    try:
        _say()
    finally:
        os._exit(status)


def _end_late(status: int) -> None:
    time.sleep(PATIENCE)
    os._exit(status)


def _say() -> None:
    # Looks modules up instead of importing them: an absent or half-imported one needs no cleanup.
    screen = getattr(sys.modules.get("npumake.cli.screen"), "SCREEN", None)
    temporaries = sys.modules.get("npumake.lifetime.temporaries")
    with suppress(OSError):
        if screen is not None:
            screen.end()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{LINE}\n".encode())
        # A build that now misses its temporary files prints nothing.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
    if remove := getattr(temporaries, "remove_owned", None):
        remove()
