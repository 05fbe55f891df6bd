"""Holdout: which samples calibrate a trial, and which score it.

Holdout samples are every second one, at most MAX_HOLDOUT_SAMPLES, evenly spaced; all below
MIN_HOLDOUT_SPLIT. No range, weight or bias follows them; ranges follow at most
MAX_CALIBRATION_SAMPLES others. Ranges clip nothing of their own samples, so a recipe whose channels
just fit them would look better than it is. Of YuNet's loss on ara240 by `max`, channels that fill
their grids recover 28 % where the ranges know the samples and 4 % where they do not. The chosen
recipe is then made from all samples.

Below twice MAX_HOLDOUT_SAMPLES the halves swap roles: a second fold is made from the holdout
samples and scored on the others, and the figure covers both. Ranges of eight or sixteen samples can
be lucky with as many others.
"""

from __future__ import annotations

from typing import NamedTuple

MIN_HOLDOUT_SPLIT = 8
MAX_HOLDOUT_SAMPLES = 32
MAX_CALIBRATION_SAMPLES = 128


class HoldoutFold(NamedTuple):
    """The numbers of the samples for ranges, weights and biases, and of those for scoring."""

    calibration: tuple[int, ...]
    holdout: tuple[int, ...]


def holdout_folds(count: int) -> tuple[HoldoutFold, ...]:
    """The folds for `count` samples."""
    judges = tuple(holdout_samples(count))
    others = tuple(n for n in range(count) if n not in judges) or judges
    calibration = others[:: -(-len(others) // MAX_CALIBRATION_SAMPLES)]
    first = HoldoutFold(calibration, judges)
    return (
        (first, HoldoutFold(judges, others))
        if MIN_HOLDOUT_SPLIT <= count < 2 * MAX_HOLDOUT_SAMPLES
        else (first,)
    )


def holdout_samples(count: int) -> range:
    """The numbers, of `count` samples, that score a trial."""
    if count < MIN_HOLDOUT_SPLIT:
        return range(count)
    step = max(2, count // MAX_HOLDOUT_SAMPLES)
    return range(step - 1, count, step)[:MAX_HOLDOUT_SAMPLES]
