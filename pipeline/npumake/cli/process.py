"""What a process of ours is set to before anything large is loaded."""

from __future__ import annotations

import gc
import io
import os
import sys

from npumake.cli.show import print_bug
from npumake.cli.terminal import print_safely


def set_up() -> None:
    """One thread for each matrix product, and fewer looks for garbage.

    Samples are computed side by side (npumake.engine.parallel); a library that splits one product
    over threads besides only gets in the way: small products become many times slower. This is for
    OpenBLAS, which NumPy's wheels bring; whoever has set it keeps it.

    A build makes many small objects that stay (modules, graphs): looking through them after every
    700 new ones, as Python does, was a tenth of a small build.

    A terminal or a pipe that takes ASCII alone (LC_ALL=POSIX) gets an escape for any other letter.
    What is raised and is no PipelineError says that it is a bug.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.excepthook = print_bug
    print_safely()
    gc.set_threshold(20_000, 20, 10)
