"""The difference of a board's tensor from ours in quantized steps ("codes"), and its bound.

A difference of one code is another engine's rounding, unless a quarter of the elements differ, or
nearly all in one direction: that is another rounding mode or zero point. Of nearly all, elements at
our lowest value are left out: behind a Relu they are clamped in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npumake.bundle.program import Tensor
from npumake.kernels.measure import agreement

MAX_CODE_DIFFERENCE = 1.0  # codes
SLACK = 1e-3  # codes, for float values
LEVELS = 1024  # codes per range of a float tensor
MAX_OFF_SHARE, MIN_OFF_ELEMENTS = 0.25, 16  # share and number of elements that may differ by a code
ONE_WAY_SHARE, MIN_ONE_WAY_ELEMENTS = 0.9, 4  # the same, for differences in one direction


@dataclass(frozen=True)
class CodeDifference:
    """`worst` is in codes, infinite for NaN where ours is not; `share` is that of the elements that
    differ by more than half a code."""

    worst: float
    share: float
    cosine: float
    is_shifted: bool  # more elements are a code away than rounding explains

    def within(self, bound: float) -> bool:
        return self.worst <= bound + SLACK and not self.is_shifted

    @property
    def is_equal(self) -> bool:
        return self.worst <= SLACK


def difference(computed: np.ndarray, dumped: np.ndarray, grid: Tensor) -> CodeDifference:
    """The difference of two arrays: quantized values, or floats of a tensor without a grid."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = (dumped - computed) / unit(computed, grid)
    apart = np.where((dumped == computed) | (np.isnan(dumped) & np.isnan(computed)), 0.0, apart)
    apart = np.nan_to_num(apart, nan=np.inf)
    off = np.abs(apart) > 0.5
    count, share = int(off.sum()), float(off.mean()) if off.size else 0.0
    one_way = bool((apart[off] > 0).all() or (apart[off] < 0).all())
    is_shifted = (count >= MIN_OFF_ELEMENTS and share > MAX_OFF_SHARE) or (
        one_way
        and (
            (count >= MIN_ONE_WAY_ELEMENTS and share >= ONE_WAY_SHARE)
            or _free_share(off, computed) >= ONE_WAY_SHARE
        )
    )
    zero = grid.zero_point if grid.scale is not None else 0
    cosine = agreement(computed - zero, dumped - zero).cosine
    worst = float(np.abs(apart).max(initial=0.0))
    return CodeDifference(worst, share, cosine, is_shifted)


def _free_share(off: np.ndarray, computed: np.ndarray) -> float:
    """The share that differs, of the elements above our lowest value; 0 for too few."""
    free = computed > np.min(computed, initial=np.inf)
    return float(off[free].mean()) if np.count_nonzero(off & free) >= MIN_OFF_ELEMENTS else 0.0


def unit(computed: np.ndarray, grid: Tensor) -> float:
    """The size of one code: 1, or a fraction of a float tensor's range."""
    if grid.scale is not None:
        return 1.0
    finite = np.abs(computed[np.isfinite(computed)])
    return float(finite.max(initial=0.0)) / LEVELS or 1.0
