"""Ties: where codes leave it to chance which number of an answer is the larger.

    ties    neighbours among the TOP largest numbers of the float model's answer, in their order,
            that it tells apart and the quantized model does not

One picture in twenty has two classes that are nearer than a step of 8 bits, one in a hundred two
that are cut off together. Which of them is first is then a matter of their numbers, and no cosine
tells it: all of an answer may be as close as before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

TOP = 5


def argmax_ties(real: Iterable[np.ndarray], quantized: Iterable[np.ndarray]) -> int:
    """Of the answers to all samples, one array of real numbers each."""
    return sum(_of_one(a.ravel(), b.ravel()) for a, b in zip(real, quantized, strict=True))


def _of_one(real: np.ndarray, quantized: np.ndarray) -> int:
    top = np.argsort(-real, kind="stable")[:TOP]
    return int(np.sum((np.diff(quantized[top]) == 0) & (np.diff(real[top]) != 0)))
