"""Paired bootstrap: intervals of figures, and of differences between models.

A resample draws as many samples as there are, with replacement. All models see the same resamples,
so a difference is taken resample by resample: what makes a picture hard for both cancels. Figures
such as mAP are computed anew from the samples of each resample.
Source: Efron, Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

RESAMPLES, SEED = 1000, 0
PERCENTILES = (2.5, 97.5)

T = TypeVar("T")
Totals = NDArray[np.floating]  # (RESAMPLES + 1, ...): of all samples first


def resampled(
    scores: Mapping[str, Sequence[T]], total: Callable[[Sequence[T]], object]
) -> dict[str, Totals]:
    """Totals of each model, from its scores by sample; all models have the same samples."""
    count = len(next(iter(scores.values())))
    rows = np.random.RandomState(SEED).randint(0, count, (RESAMPLES, count))
    return {
        name: np.array([total([values[k] for k in chosen]) for chosen in (range(count), *rows)])
        for name, values in scores.items()
    }


def interval(totals: Totals) -> list[float]:
    """The figure of all samples, and the percentiles of those of the resamples."""
    low, high = np.percentile(totals[1:], PERCENTILES)
    return [round(float(value), 2) for value in (totals[0], low, high)]


def standard_error(totals: Totals) -> Totals:
    """Of the figure of all samples."""
    return np.std(totals[1:], axis=0)
