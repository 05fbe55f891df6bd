"""A vendor's own command on a hand-over, in a process of its own; its log is kept and told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipeline.compilers.process import TOLD
from pipeline.errors import StageError

LOG = "convert.log"


def run_tool(command: Sequence[str], folder: Path, product: Path) -> None:
    """Run it in `folder`, what it says into its LOG; afterwards `product` must be there, and new.

    Raises StageError where the command is not on PATH, fails, or leaves no product.
    """
    found = shutil.which(command[0])
    if found is None:
        hint = "install the vendor's toolchain, or run convert.sh where it is"
        raise StageError(f"`{command[0]}` is not on PATH", str(folder), hint)
    product.unlink(missing_ok=True)
    log = folder / LOG
    with log.open("wb") as said:
        done = subprocess.run(
            [found, *command[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        what = f"{command[0]} fails with exit status {done.returncode}"
        raise StageError(f"{what}:\n{_last_lines(log)}", str(log))
    if not product.is_file():
        what = f"{command[0]} succeeds and leaves no {product.name}"
        raise StageError(f"{what}:\n{_last_lines(log)}", str(log))


def _last_lines(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - (1 << 16)))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join([line for line in lines if line.strip()][-TOLD:])
