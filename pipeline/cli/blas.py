"""One thread for each matrix product, said before NumPy is loaded.

Samples are computed side by side (pipeline.engine.parallel); a library that splits one product
over threads besides only gets in the way: small products become many times slower.
"""

from __future__ import annotations

import os


def one_thread() -> None:
    """For OpenBLAS, which NumPy's wheels bring. Whoever has set it keeps it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
