"""Runs Python in forks of a process that has imported everything; see forks.py.

A message is one run: what to run as JSON, with two files for its output and a pipe for its exit
code. All that a command would load first is loaded before the fork, but for what starts a thread:
such libraries start theirs in the child. With `libraries` it loads those alone, so that a run may
bring another npumake.
"""

from __future__ import annotations

import atexit
import gc
import importlib.metadata
import io
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

ADAPTERS = "npumake.compilers.adapters.scripts"  # other interpreters run them
LIBRARIES = (
    *("doit.doit_cmd", "jsonschema", "numpy", "onnx.checker", "onnx.shape_inference", "onnx_ir"),
    *("onnxruntime", "PIL.Image", "rich.console", "rich.table", "safetensors.numpy", "yaml"),
)
LONGEST_MESSAGE = 1 << 17  # bytes
LONGEST_RUN = 600  # seconds
FILES = 3  # of a run: its output, its errors, and where the exit code goes


def load_libraries() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)


def load_ours() -> None:
    import npumake

    for module in pkgutil.walk_packages(npumake.__path__, "npumake."):
        if not module.name.startswith(ADAPTERS):
            importlib.import_module(module.name)
    for late in ("jsonschema", "npumake.bundle.secure"):
        dir(sys.modules[late])  # npumake.late: executed when something is looked up
    remember_files()
    assert len(os.listdir("/proc/self/task")) == 1, "a fork has none of its parent's threads"


def remember_files() -> None:
    """What every run would read anew: installed packages, and the files of our chips."""
    importlib.metadata.entry_points()
    reader: Any = sys.modules["npumake.targets.reader"]
    for name in reader.target_names():
        reader.read_target(name)


def replay_children(folder: str) -> None:
    """Children that run compiled files leave their outputs there; see replayed_child.py."""
    isolated: Any = sys.modules["npumake.runtime.isolated"]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replayed_child.py")
    isolated.CHILD_COMMAND = (sys.executable, "-IS", script, folder, *isolated.CHILD_COMMAND)


def serve(channel: socket.socket, listener: socket.socket) -> None:
    """Runs what comes from a test process by `channel`, until its other end is closed, and from
    commands by `listener`. Every run has a process that waits for it, so that several go on side
    by side."""
    while True:
        ready, _, _ = select.select([channel, listener], [], [])
        if listener in ready:
            connection, _ = listener.accept()
            with connection:
                _begin(*_received(connection))
        if channel in ready:
            message, files = _received(channel)
            if not message:
                return
            _begin(message, files)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _received(channel: socket.socket) -> tuple[bytes, list[int]]:
    return socket.recv_fds(channel, LONGEST_MESSAGE, FILES)[:2]


def _begin(message: bytes, files: list[int]) -> None:
    if os.fork() == 0:
        os._exit(_wait_for_run(json.loads(message), *files))
    for file in files:
        os.close(file)


def _wait_for_run(run: dict[str, Any], output: int, errors: int, exit_code: int) -> int:
    child = os.fork()
    if child == 0:
        os.close(exit_code)
        _end(_code_of(lambda: _run(run, output, errors)))
    _, status = os.waitpid(child, 0)
    os.write(exit_code, str(os.waitstatus_to_exitcode(status)).encode())
    return 0


def _run(run: dict[str, Any], output: int, errors: int) -> None:
    """As `python` would with these arguments: `-m MODULE …` or `-c CODE …`, perhaps behind `-P`:
    then the current folder is not on sys.path."""
    for stream, file in (0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, errors):
        os.dup2(file, stream)
        os.close(file)
    sys.stdout = sys.__stdout__ = _stream(1, sys.stdout.errors)
    sys.stderr = sys.__stderr__ = _stream(2, sys.stderr.errors, line_buffering=True)
    os.chdir(run["folder"])
    os.umask(run["umask"])
    os.environ.clear()
    os.environ.update(run["environment"])
    tempfile.tempdir = None
    is_safe, arguments = run["arguments"][0] == "-P", run["arguments"]
    option, what, *rest = arguments[is_safe:]
    here = [] if is_safe else [os.getcwd() if option == "-m" else ""]
    sys.path[:0] = [*run["path"], *here]
    sys.argv = [what if option == "-m" else option, *rest]
    signal.alarm(LONGEST_RUN)
    if run["limits"]:
        _limit(**run["limits"])
    if option == "-c":
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    elif what.startswith("npumake"):
        sys.exit(importlib.import_module("npumake.cli.main").main())
    else:
        runpy.run_module(what, run_name="__main__", alter_sys=True)


def _stream(number: int, errors: str | None, line_buffering: bool = False) -> io.TextIOWrapper:
    """As the interpreter opens it, by what it now is: a file or a pipe."""
    raw = io.BufferedWriter(io.FileIO(number, "wb", closefd=False))
    return io.TextIOWrapper(raw, "utf-8", errors, line_buffering=line_buffering)


def _limit(seconds: int, memory: int) -> None:
    """Seconds of a processor, however many others want it; an end to what waits for ever; and
    bytes of address space beyond an idle process."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(30 * seconds)
    with open("/proc/self/statm") as pages:
        idle = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (idle + memory, idle + memory))


def _code_of(command: Callable[[], None]) -> int:
    """The exit code that the interpreter would end with."""
    try:
        command()
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  # the interpreter's own last resort, in a fork
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code: int) -> None:
    """As the interpreter ends, but for what it would free."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"Exception ignored: {error}\n")
        code = 120
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    *numbers, folder, loaded = sys.argv[1:]
    if loaded == "libraries":
        load_libraries()
    else:
        load_ours()
        replay_children(folder)
    gc.set_threshold(20_000, 20, 10)  # as `npumake` sets it
    os.fsync = lambda _: None  # the power stays on, and disks that others use are slow
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    gc.freeze()
    own, commands = (socket.socket(fileno=int(number)) for number in numbers)
    with own, commands:
        serve(own, commands)
