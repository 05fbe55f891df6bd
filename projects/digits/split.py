"""Which of scikit-learn's 1,797 digits are for what: 600 to test, 64 to calibrate, 1,133 to learn.

The k-th of the n images of a class, in shuffled order, stands at (k + 1/2) / n of the way from 0
to 1. Sorted by that place, every slice of the whole holds the ten classes in equal shares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TEST, CALIBRATION = 600, 64
SEED = 0


class Split(NamedTuple):
    """Rows of the data set, disjoint; together they are all of it."""

    train: NDArray[np.intp]
    calibration: NDArray[np.intp]
    test: NDArray[np.intp]


def split(labels: NDArray[np.integer]) -> Split:
    """Stratified by `labels` (N,); the same on every machine and with every NumPy."""
    shuffle = np.random.RandomState(SEED).permutation  # frozen by NumPy; default_rng may change
    place = np.empty(len(labels))
    for digit in np.unique(labels):
        rows = shuffle(np.flatnonzero(labels == digit))
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    test, calibration, train = np.split(
        np.argsort(place, kind="stable"), [TEST, TEST + CALIBRATION]
    )
    return Split(train, calibration, test)
