"""What is known of the tensor that diverges, and how well a cause explains it.

Let o be our codes, t theirs, and p what a cause predicts of o. With a tolerance e in codes,

    score = 1 - count(|t - p| > e) / count(|t - o| > e)

1 where the cause explains every element that differs, 0 where it explains none, and less where it
breaks what agreed. The tolerance is half a code; one code counts a little less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.debug.dumps.reading import DumpReading
from npumake.digest import Json

EXACT, LOOSE = 0.5, 1.0  # codes
LOOSENESS = 0.97  # what the score of the loose tolerance is worth
CLAMPED = 0.98  # what the score is worth that leaves clamped elements out
REAL_CODES = 1e-3  # codes that real numbers may be apart and still the same


@dataclass(frozen=True)
class LikelyCause:
    """A likely cause: its kind, the share of the differing elements that it explains, a sentence,
    and the figures in it."""

    kind: str
    score: float
    sentence: str
    figures: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """Both tensors in our shape, as float64 codes. A tensor of real numbers has a grid, too, whose
    scale is what counts as a code of it. `unlike` is what the reading has otherwise than the rest
    of the dump: a kind and a sentence. `scales` are those of the program's tensors, the
    neighbours first. `buffers` are our other tensors, `inputs` what ours would be of other inputs:
    pairs of a name and codes, made when they are asked for."""

    ours: np.ndarray
    reading: DumpReading
    grid: Tensor
    step: Instruction | None = None
    unlike: tuple[str, str] | None = None
    scales: Mapping[str, float] = field(default_factory=dict)
    buffers: Callable[[], Iterable[tuple[str, np.ndarray]]] = tuple
    inputs: Callable[[], Iterable[tuple[str, np.ndarray]]] = tuple

    @property
    def theirs(self) -> np.ndarray:
        return self.reading.codes

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The codes that the board can hold: all, where it shows others than the type has."""
        if self.is_float:
            return -np.inf, np.inf
        info = np.iinfo(self.grid.dtype)
        low, high = float(info.min), float(info.max)
        inside = (self.theirs >= low - EXACT) & (self.theirs <= high + EXACT)
        return (low, high) if inside.all() or not self.reading.is_real else (-np.inf, np.inf)

    @property
    def is_float(self) -> bool:
        """Whether ours is no tensor of codes."""
        return np.dtype(self.grid.dtype).kind == "f"

    @property
    def zero(self) -> int:
        return self.grid.zero_point

    @property
    def bits(self) -> int:
        return 8 * np.dtype(self.grid.dtype).itemsize

    @cached_property
    def free(self) -> np.ndarray:
        """Where neither is at an end of the range, so that nothing was cut off."""
        low, high = self.limits
        both = (self.theirs, self.ours)
        inside = [(x > low + REAL_CODES) & (x < high - REAL_CODES) for x in both]
        return inside[0] & inside[1] & np.isfinite(self.theirs)

    @property
    def channel_axis(self) -> int:
        """Of our shape: the second, behind the batch, or the last of a matrix."""
        return min(1, self.ours.ndim - 1)

    @cached_property
    def in_file(self) -> tuple[np.ndarray, np.ndarray]:
        """Ours and theirs, flat, as they lie in the file."""
        order = self.reading.order
        return self.ours.transpose(order).ravel(), self.theirs.transpose(order).ravel()

    def clipped(self, predicted: np.ndarray) -> np.ndarray:
        return np.clip(predicted, *self.limits)

    def score(self, predicted: np.ndarray, tolerance: float = EXACT) -> float:
        """Of what a cause predicts, in our shape."""
        return explained(self.ours, self.theirs, predicted, tolerance)

    def score_of_grid(self, predicted: np.ndarray, tolerance: float = EXACT) -> float:
        """The same of another grid. Where ours ends at a clamp, theirs may end at another."""
        attributes = {} if self.step is None else self.step.attributes
        low, high = (
            float(attributes.get("low", self.limits[0])),
            float(attributes.get("high", self.limits[1])),
        )
        freed = np.where(self.ours <= low, np.minimum(predicted, self.theirs), predicted)
        freed = np.where(self.ours >= high, np.maximum(freed, self.theirs), freed)
        strict = self.score(predicted, tolerance)
        return max(strict, CLAMPED * self.score(freed, tolerance))


def explained(
    ours: np.ndarray, theirs: np.ndarray, predicted: np.ndarray, tolerance: float = EXACT
) -> float:
    """The score above: of arrays of one shape, the better of the exact and the loose one."""
    exact = _gain(ours, theirs, predicted, tolerance)
    return max(exact, LOOSENESS * _gain(ours, theirs, predicted, max(tolerance, LOOSE)))


def _gain(ours: np.ndarray, theirs: np.ndarray, predicted: np.ndarray, tolerance: float) -> float:
    apart = int((~(np.abs(theirs - ours) <= tolerance)).sum())
    left = int((~(np.abs(theirs - predicted) <= tolerance)).sum())
    return 1.0 - left / apart if apart else 0.0
