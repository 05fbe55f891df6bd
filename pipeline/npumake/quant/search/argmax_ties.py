"""Argmax ties: quantized values that no longer tell the top classes apart.

    ties    neighbours among the TOP_K largest values of the float model's output, in order, that
            differ there and are equal in the quantized model

In one picture of twenty, two classes are nearer than an 8-bit step; in one of a hundred, two are
clipped together. Their class numbers then decide the order. The cosine does not show it: an output
may be as close as before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

TOP_K = 5


def argmax_ties(real: Iterable[np.ndarray], quantized: Iterable[np.ndarray]) -> int:
    """The number of ties over all samples; one array of real values per sample and model."""
    return sum(_of_one(a.ravel(), b.ravel()) for a, b in zip(real, quantized, strict=True))


def _of_one(real: np.ndarray, quantized: np.ndarray) -> int:
    top = np.argsort(-real, kind="stable")[:TOP_K]
    return int(np.sum((np.diff(quantized[top]) == 0) & (np.diff(real[top]) != 0)))
