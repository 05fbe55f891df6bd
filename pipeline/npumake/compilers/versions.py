"""The version of a compiler that is no distribution of this interpreter, for the key.

Imports nothing that compiles: it runs in every build, also when there is nothing to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from npumake import digest
from npumake.errors import StageError
from npumake.lifetime.parent import CANNOT_RUN, run_supervised

MAX_SECONDS = 60  # seconds
MAX_CHARACTERS = 80  # characters of what a tool says


def tool_version(command: str, argument: str) -> str:
    """What the command on PATH says of its version, and the digest of its file: an installation
    that tells nothing new is told apart all the same. Empty where there is none.

    Raises StageError where it does not answer.
    """
    executable = shutil.which(command)
    if executable is None:
        return ""
    version = answer((executable, argument), os.stat(executable).st_mtime_ns)
    return f"{version} ({digest.of_file(Path(executable))[:12]})".lstrip()


@cache
def answer(command: Sequence[str], as_of: int) -> str:
    """The last line that a command says, empty where it fails; asked once for each `as_of`."""
    try:
        done = run_supervised(command, MAX_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _silent(command[0], str(error)) from error
    if done.returncode == CANNOT_RUN:
        raise _silent(command[0], done.stderr.decode("utf-8", "replace").strip()[-MAX_CHARACTERS:])
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    texts = [line.strip() for line in lines if line.strip()]
    return "" if done.returncode or not texts else texts[-1][:MAX_CHARACTERS]


def _silent(command: str, why: str) -> StageError:
    return StageError(f"`{os.path.basename(command)}` does not tell its version: {why}", command)
