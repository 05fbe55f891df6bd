"""Runs a vendor's command on a hand-over in a separate process; keeps and shows its log."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from npumake.compilers.handover import Handover
from npumake.compilers.handover_package import MODEL, WEIGHTS
from npumake.compilers.process import MAX_LINES, refuse_failure
from npumake.compilers.required import NO_TOOL_HINT
from npumake.dialects.handover import PRODUCTS, ClosedTool, CommandNames
from npumake.errors import Route, StageError
from npumake.lifetime.parent import supervised
from npumake.lifetime.temporaries import temporary_folder
from npumake.progress import tell

LOG = "convert.log"
PREFIX = "model"  # of a product that the build names


def vendor_made(handover: Handover, tool: ClosedTool, chip: str, profiling: bool = False) -> bytes:
    """The tool's products for the hand-over; every line of its output is shown.

    Raises StageError as `run_tool`.
    """
    with temporary_folder() as folder:
        names = handover.lay_out(folder)
        model = next(name for name in names if name in [MODEL + end for end in tool.models])
        files = CommandNames(model, WEIGHTS if WEIGHTS in names else None, chip, profiling)
        product = folder / PRODUCTS / tool.product.format(prefix=PREFIX)
        run_tool(tool.command(files), folder, product, Route("compile.vendor_tool"))
        return product.read_bytes()


def run_tool(command: Sequence[str], folder: Path, product: Path, where: str | None = None) -> None:
    """Runs the command in `folder`, with its output in LOG; `product` must be new afterwards.

    Raises StageError if the command is not on PATH, fails, or leaves no product. The error
    points to `where`, else to the log.
    """
    executable = shutil.which(command[0])
    if executable is None:
        message = f"`{command[0]}` is not on PATH"
        raise StageError(message, where or str(folder), NO_TOOL_HINT)
    product.unlink(missing_ok=True)
    status, last = _run_logged([executable, *command[1:]], folder)
    refuse_failure(command[0], status, last, [product], where or str(folder / LOG))


def _run_logged(command: Sequence[str], folder: Path) -> tuple[int, Iterable[str]]:
    """Exit status and last lines. All lines go to the log and are shown as they arrive."""
    last: deque[str] = deque(maxlen=MAX_LINES)
    name = Path(command[0]).name
    with (
        (folder / LOG).open("wb") as log,
        subprocess.Popen(
            supervised(command),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            log.write(line)
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                last.append(text)
                tell(f"{name}: {text}")
    return running.returncode, last
