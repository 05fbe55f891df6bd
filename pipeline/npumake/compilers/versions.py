"""Versions of external compilers, for the cache key.

Imports no compilers: it runs in every build, even with nothing to do.
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
MAX_CHARACTERS = 80  # of a version text


def tool_version(command: str, argument: str) -> str:
    """The version of the command on PATH with the digest of its file, so that two installations
    with the same version text differ. Empty if it is not on PATH.

    Raises StageError if the command does not answer.
    """
    executable = shutil.which(command)
    if executable is None:
        return ""
    version = answer((executable, argument), os.stat(executable).st_mtime_ns)
    return f"{version} ({digest.of_file(Path(executable))[:12]})".lstrip()


@cache
def answer(command: Sequence[str], as_of: int) -> str:
    """The last line of a command's output, empty if it fails; cached per `as_of`."""
    try:
        completed = run_supervised(command, MAX_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _silent(command[0], str(error)) from error
    if completed.returncode == CANNOT_RUN:
        raise _silent(
            command[0], completed.stderr.decode("utf-8", "replace").strip()[-MAX_CHARACTERS:]
        )
    lines = completed.stdout.decode("utf-8", "replace").split("\n")
    texts = [line.strip() for line in lines if line.strip()]
    return "" if completed.returncode or not texts else texts[-1][:MAX_CHARACTERS]


def _silent(command: str, why: str) -> StageError:
    return StageError(f"`{os.path.basename(command)}` does not report its version: {why}", command)
