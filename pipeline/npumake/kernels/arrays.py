"""The three kinds of array that the kernels speak of, and what their values may be unfit for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.integer[Any]]  # any width: values on a grid
Int64: TypeAlias = npt.NDArray[np.int64]  # exact accumulators
Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class NotANumberError(ValueError):
    """NaN, where a number is put on a grid."""


class TooWideError(OverflowError):
    """Sums that no float and no integer here holds exactly."""
