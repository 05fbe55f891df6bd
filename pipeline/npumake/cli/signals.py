"""SIGINT and SIGTERM end this process within a second, whatever it is doing.

Python calls a handler between two steps of the main thread, and that may be in a library for long,
or in the middle of an import. So a thread waits for signals, says the one line, removes the
temporaries of this process and ends it. Whatever is published is whole at every moment
(npumake.cache.publish), workers and compilers end with this process (npumake.lifetime).

It loads little: it is called before anything else is loaded.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from contextlib import suppress

LINE = "interrupted: what was made is kept, the next run goes on from there"
PATIENCE = 0.5  # seconds to say so, should the terminal not take it


def end_at_signals() -> None:
    """For a process of ours, from its main thread. A signal that is ignored, as in the background
    of a script, stays so."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    # Unlike threading.Thread, this does not wait until the thread runs.
    _thread.start_new_thread(_wait, (readable,))
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave_it)


def _leave_it(*_: object) -> None:
    """To the thread: without a handler Python tells it nothing."""


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
    # What is not loaded has nothing to end, and may be half loaded: it is looked up, not imported.
    screen = getattr(sys.modules.get("npumake.cli.screen"), "SCREEN", None)
    temporaries = sys.modules.get("npumake.lifetime.temporaries")
    with suppress(OSError):
        if screen is not None:
            screen.end()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{LINE}\n".encode())
        # A build that meanwhile misses its temporary files tells nobody.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for shown in (1, 2):
            os.dup2(nowhere, shown)
    if remove := getattr(temporaries, "remove_owned", None):
        remove()
