"""Process-wide settings, applied before large imports."""

from __future__ import annotations

import gc
import io
import os
import sys

from npumake.cli.show import print_bug
from npumake.cli.terminal import print_safely


def set_up() -> None:
    """Sets BLAS threads, garbage collection, output encoding and the hook for bugs.

    Samples run in parallel (npumake.engine.parallel), so each matrix product gets one thread: more
    threads slow small products down many times. This concerns OpenBLAS of NumPy's wheels; a value
    set by the user stays.

    A build creates many long-lived objects (modules, graphs). Python's default threshold of 700 new
    objects cost a tenth of a small build.

    An ASCII terminal or pipe (LC_ALL=POSIX) gets escapes for other characters. Exceptions other
    than PipelineError are reported as bugs.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.excepthook = print_bug
    print_safely()
    gc.set_threshold(20_000, 20, 10)
