"""`python -m …` and `python -c …` in forks of one process that has imported everything.

Starting Python and importing the package took half a second and more of every run: most of the
time of the suite. A run that asks for other settings of the interpreter starts one of its own. That
a new interpreter does the same is seen by the session's first build, by README.md, the walks, the
CI examples, and the tests that kill a build.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Literal

REPO = Path(__file__).parents[1]
Loaded = Literal["everything", "libraries"]
ADDRESS = "socket"
READ_ONCE = ("PYTHON", "LC_", "LANG", "OPENBLAS_", "OMP_")  # variables, when Python starts
AT_START = {name: text for name, text in os.environ.items() if name.startswith(READ_ONCE)}


@dataclass(frozen=True)
class Limits:
    """Seconds of a processor, and bytes of memory beyond those of an idle process."""

    seconds: int
    memory: int


@dataclass(frozen=True)
class ForkServer:
    """The process, our end of its socket, and a folder with the address for others."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    folder: Path
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, message: bytes, output: IO[str], errors: IO[str]) -> int:
        """The exit code; negative for a signal."""
        readable, writable = os.pipe()
        with os.fdopen(readable, "rb") as exit_code:
            try:
                with self.lock:
                    files = [output.fileno(), errors.fileno(), writable]
                    socket.send_fds(self.channel, [message], files)
            finally:
                os.close(writable)
            code = exit_code.read()
        assert code, "the fork server has ended"
        return int(code)

    def end(self) -> None:
        self.channel.close()
        self.process.terminate()  # a fork of ours may hold the socket
        self.process.wait()


@cache
def fork_server(loaded: Loaded = "everything", behind: tuple[str, ...] = ()) -> ForkServer:
    """The server of this process, which ends with it; started by the words it stands behind."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    folder = TemporaryDirectory(prefix="forks-")
    atexit.register(folder.cleanup)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{folder.name}/{ADDRESS}")
        listener.listen()
        numbers = [theirs.fileno(), listener.fileno()]
        script = Path(__file__).with_name("fork_server.py")
        process = subprocess.Popen(
            [*behind, sys.executable, str(script), *map(str, numbers), folder.name, loaded],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **interpreter_settings()},
            pass_fds=numbers,
        )
    server = ForkServer(process, ours, Path(folder.name))
    atexit.register(server.end)
    return server


@cache
def command_folder() -> Path:
    """For a shell's PATH: `npumake` and `doit` as commands whose runs are forks. Settings of the
    interpreter have no effect on them."""
    folder, tests = fork_server().folder, Path(__file__).parent
    for name, module in (("npumake", "npumake.cli.main"), ("doit", "doit")):
        script = folder / name
        script.write_text(
            f"#!{sys.executable} -IS\nimport sys\nsys.path.append({str(tests)!r})\n"
            "from fork_client import run\n"
            f"sys.exit(run({str(folder / ADDRESS)!r}, {module!r}))\n"
        )
        script.chmod(0o755)
    return folder


def interpreter_settings() -> dict[str, str]:
    """Of the server: our package, and an encoding as in most people's terminals."""
    return {"PYTHONPATH": str(REPO / "pipeline"), "PYTHONIOENCODING": "utf-8:strict"}


def run_python(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    path: Sequence[Path] = (),
    loaded: Loaded = "everything",
    behind: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """`python *arguments` in a folder, as subprocess.run would give it. `path` goes before
    sys.path, of those that have loaded libraries alone where it brings plugins. `behind` is a
    command that runs another with less rights."""
    if not is_like_ours(environment):
        assert not path, "a new interpreter has its PYTHONPATH"
        command = [*behind, sys.executable, *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    with text_file() as output, text_file() as errors:
        message = request(arguments, folder, environment, path)
        code = fork_server(loaded, behind).run(message, output, errors)
        return subprocess.CompletedProcess(arguments, code, text_of(output), text_of(errors))


def run_npumake(
    *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`npumake *arguments` as a user types it, by default here."""
    return run_python(
        *("-m", "npumake.cli.main", *arguments),
        folder=folder or Path.cwd(),
        environment={**user_environment(), **(environment or {})},
    )


def user_environment() -> dict[str, str]:
    """Ours, without CI's habit of reading every file again."""
    return {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}


def run_fork(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    path: Sequence[Path],
    limits: Limits,
    loaded: Loaded,
) -> tuple[int, str]:
    """The exit code and all output of `python *arguments` within limits. `path` goes before
    sys.path."""
    message = request(arguments, folder, environment, path, limits)
    with text_file() as output:
        code = fork_server(loaded).run(message, output, output)
        return code, text_of(output)


def request(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    path: Sequence[Path] = (),
    limits: Limits | None = None,
) -> bytes:
    document = {
        "arguments": arguments,
        "folder": str(folder),
        "environment": dict(environment),
        "path": [str(each) for each in path],
        "umask": _umask(),
        "limits": None if limits is None else vars(limits),
    }
    return json.dumps(document).encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def text_file() -> IO[str]:
    return TemporaryFile("w+", encoding="utf-8", errors="backslashreplace")


def text_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def is_like_ours(environment: Mapping[str, str]) -> bool:
    """Whether a fork would read these variables as a new interpreter does."""
    read = {name: text for name, text in environment.items() if name.startswith(READ_ONCE)}
    settings = interpreter_settings()
    return all(
        read.get(name) in (AT_START.get(name), settings.get(name, AT_START.get(name)))
        for name in {*read, *AT_START}
    )
