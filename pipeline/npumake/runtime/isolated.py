"""Runs a compiled file in a child process, so that a crash there is only an error here.

The processes share a folder: request.json and one `.npz` per run go in, one `.npz` per run comes
out. Nothing is pickled. The child has a time and a memory limit and ends with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from npumake.engine.ort import Feeds
from npumake.lifetime.temporaries import temporary_folder
from npumake.runtime.isolated_child import (
    ERROR,
    MISTAKE,
    OPENED,
    REQUEST,
    TAPPED,
    feed_file,
    output_file,
)

# The child finds our package by path: on sys.path `npumake` may be another folder. It skips the
# two `__init__` modules, which import more than it needs.
BOOT = """
import sys, types
for name in ("npumake", "npumake.runtime"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [sys.argv[1] + name.removeprefix("npumake").replace(".", "/")]
from npumake.runtime.isolated_child import main
sys.exit(main(sys.argv[2]))
"""
CHILD_COMMAND = (sys.executable, "-P", "-c", BOOT, str(Path(__file__).parents[1]))
OPEN_SECONDS, RUN_SECONDS = 120, 120  # seconds
BASE_MEMORY_BYTES, MEMORY_PER_FILE_BYTE = (
    8 << 30,
    16,
)  # bytes, and so many more for each of the file
MAX_LINES = 6  # last lines of the process's output
MAX_LINE_LENGTH = 300  # characters of such a line
OUT_OF_MEMORY = ("bad_alloc", "MemoryError", "cannot allocate", "failed to allocate")


class Job(NamedTuple):
    """A file and its feeds, run by run. `command`, by default CHILD_COMMAND, gets the folder as its
    last argument.

    `every` returns the inner tensors too, from a second session of the same file: one that keeps
    them, or one of `tapped`, the file with its inner tensors as outputs. `taps` names those to
    return, for a runtime that selects them itself."""

    data: bytes
    suffix: str
    feeds: Sequence[Feeds]
    every: bool = False
    command: tuple[str, ...] = ()
    tapped: bytes = b""
    taps: tuple[str, ...] = ()


class FileRun(NamedTuple):
    """One run of a file: its outputs by name, and its inner tensors by name or index."""

    outputs: Mapping[str, np.ndarray]
    inner: Mapping[str, np.ndarray]


class RunError(Exception):
    """The child failed in run number `run`; None means while it opened the file. `lines` holds the
    end of its log."""

    def __init__(self, what: str, run: int | None, lines: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.run = run
        self.lines = tuple(lines)


class Isolated:
    """The child process. It starts at `with` and runs concurrently; `runs` waits for it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._seconds = OPEN_SECONDS + RUN_SECONDS * len(job.feeds)
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as ends:
            self._folder = ends.enter_context(temporary_folder())
            self._write()
            with (self._folder / "said").open("wb") as log:
                self._process = subprocess.Popen(
                    [*(self._job.command or CHILD_COMMAND), str(self._folder)],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._ends:
            self._process.kill()
            self._process.wait()

    def runs(self) -> Iterator[FileRun]:
        """The arrays of each run. Raises RunError."""
        try:
            status = self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise self._failure(f"runs longer than {self._seconds} s") from None
        if status == MISTAKE:
            raise self._failure(
                json.loads((self._folder / ERROR).read_text(encoding="utf-8"))["what"]
            )
        if status:
            raise self._failure(_ended(status))
        for run in range(len(self._job.feeds)):
            yield self._read(output_file(self._folder, run))

    def _write(self) -> None:
        self._folder.joinpath(f"model{self._job.suffix}").write_bytes(self._job.data)
        if self._job.tapped:
            self._folder.joinpath(f"{TAPPED}{self._job.suffix}").write_bytes(self._job.tapped)
        names = list(self._job.feeds[0]) if self._job.feeds else []
        request = {
            "suffix": self._job.suffix,
            "runs": len(self._job.feeds),
            "every": self._job.every,
            "taps": self._job.taps,
            "inputs": names,
            "memory": BASE_MEMORY_BYTES + MEMORY_PER_FILE_BYTE * len(self._job.data),
            "parent": os.getpid(),
            "seconds": self._seconds + 10,  # should this process end without a word
        }
        self._folder.joinpath(REQUEST).write_text(json.dumps(request), encoding="utf-8")
        for run, feed in enumerate(self._job.feeds):
            arrays = {str(at): feed[name] for at, name in enumerate(names)}
            np.savez(feed_file(self._folder, run), **arrays)  # type: ignore[arg-type]  # of its own keyword

    def _read(self, file: Path) -> FileRun:
        """Raises RunError for a missing or damaged file."""
        try:
            with np.load(file, allow_pickle=False) as arrays:
                names = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
                outputs, inner = names["outputs"], names["inner"]
                named = [(name, arrays[str(at)]) for at, name in enumerate([*outputs, *inner])]
                return FileRun(dict(named[: len(outputs)]), dict(named[len(outputs) :]))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise self._failure(f"leaves no outputs: {error}") from error

    def _failure(self, message: str) -> RunError:
        log = (self._folder / "said").read_bytes()[-(1 << 16) :].decode("utf-8", "replace")
        lines = [line.rstrip()[:MAX_LINE_LENGTH] for line in log.splitlines() if line.strip()]
        if any(word in line for line in lines for word in OUT_OF_MEMORY):
            message += ": it needs more memory than it may have"
        finished = sum(
            output_file(self._folder, run).exists() for run in range(len(self._job.feeds))
        )
        return RunError(
            message, finished if (self._folder / OPENED).exists() else None, lines[-MAX_LINES:]
        )


def _ended(status: int) -> str:
    """How the process ended: its exit status or signal."""
    if status > 0:
        return f"ends with exit status {status}"
    try:
        return f"ends with {signal.Signals(-status).name}"
    except ValueError:
        return f"ends with signal {-status}"
