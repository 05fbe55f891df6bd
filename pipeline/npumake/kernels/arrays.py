"""Array types of the kernels, and the errors for unsuitable values."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.integer[Any]]  # any width: values on a grid
Int64: TypeAlias = npt.NDArray[np.int64]  # exact accumulators
Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class NotANumberError(ValueError):
    """NaN in a tensor to be quantized."""


class TooWideError(OverflowError):
    """A sum that neither float64 nor int64 holds exactly."""
