"""Processes that a test started, and theirs, found by a mark in the environment they inherit."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MARK = "NPUMAKE_TEST_MARK"
TELEMETRY = ".ses"  # onnxruntime's, which it leaves among temporary files after any run
# Python for the peak of a process's memory in KiB. `ru_maxrss` counts that of the parent, too.
PEAK = 'int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])'
LIMIT = 120  # seconds until what is waited for counts as never: for a machine that is busy tenfold


def marked(mark: str) -> set[int]:
    """The living processes with that mark."""
    needle, found = f"{MARK}={mark}\0".encode(), set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in folder.joinpath("environ").read_bytes():  # empty of one that has ended
                found.add(int(folder.name))
    return found


def children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
    return sorted(found)


def eventually(is_true: Callable[[], object]) -> bool:
    """Whether it comes true; not when."""
    end = time.monotonic() + LIMIT
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def environment(mark: str, **more: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    return {**clean, MARK: mark, **more}


def waits_for_signals(pid: int) -> bool:
    """Whether it has got that far: what Python and doit do before is not ours."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        (caught,) = re.findall(r"SigCgt:\s*(\w+)", status)
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
    return False
