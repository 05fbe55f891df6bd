"""The data on the tensor that diverges, and the score of a cause.

With our values o, the board's t, the prediction p of a cause from o, and a tolerance e in codes,

    score = 1 - count(|t - p| > e) / count(|t - o| > e)

The score is 1 if the cause explains every differing element, 0 if none, and negative if it breaks
agreeing ones. The tolerance is half a code; one code counts a little less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction, Tensor
from npumake.debug.dumps.last_node import LastNode
from npumake.debug.dumps.reading import DumpReading
from npumake.digest import Json

EXACT, LOOSE = 0.5, 1.0  # codes
LOOSENESS = 0.97  # factor on scores with the loose tolerance
CLAMPED = 0.98  # factor on scores without clamped elements
REAL_CODES = 1e-3  # codes; closer float values are equal
MIN_FLOOR_SHARE = 0.05  # of the elements at a clamp
MAX_COLORS = 4  # channels of a picture whose last axis has them


@dataclass(frozen=True)
class LikelyCause:
    """A likely cause: its kind, its score, a sentence, and the figures in the sentence."""

    kind: str
    score: float
    sentence: str
    figures: Mapping[str, Json] = field(default_factory=dict)


class Rerun(NamedTuple):
    """Our values after one change of a node: the kind of cause, a sentence, figures, and values."""

    kind: str
    sentence: str
    figures: Mapping[str, Json]
    values: np.ndarray


@dataclass(frozen=True)
class Evidence:
    """Both tensors in our shape, as float64 values in codes; a float tensor has a grid whose scale
    is the size of one code. `unlike` is a kind and a sentence on a form unlike the rest of the
    dump. `scales` are those of the program's tensors, neighbors first. `buffers` yields our other
    tensors, `samples` this one of other samples, `inputs` ours for changed inputs, as (name,
    values); `reruns` yields ours of changed nodes. `last_node` is the node alone, if it is known
    what it reads."""

    computed: np.ndarray
    reading: DumpReading
    grid: Tensor
    step: Instruction | None = None
    unlike: tuple[str, str] | None = None
    scales: Mapping[str, float] = field(default_factory=dict)
    buffers: Callable[[], Iterable[tuple[str, np.ndarray]]] = tuple
    inputs: Callable[[], Iterable[tuple[str, np.ndarray]]] = tuple
    samples: Callable[[], Iterable[tuple[str, np.ndarray]]] = tuple
    reruns: Callable[[], Iterable[Rerun]] = tuple
    last_node: Callable[[], LastNode | None] = lambda: None

    @property
    def dumped(self) -> np.ndarray:
        return self.reading.codes

    @cached_property
    def node(self) -> LastNode | None:
        return self.last_node()

    @property
    def unclamped(self) -> np.ndarray | None:
        """Ours before the node's clamp, with more bits; None if there is no such value."""
        return None if self.node is None else self.node.unclamped

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The range of the board's values; unlimited if it has values outside the type's range."""
        if self.is_float:
            return -np.inf, np.inf
        info = np.iinfo(self.grid.dtype)
        low, high = float(info.min), float(info.max)
        inside = (self.dumped >= low - EXACT) & (self.dumped <= high + EXACT)
        return (low, high) if inside.all() or not self.reading.is_real else (-np.inf, np.inf)

    @property
    def is_float(self) -> bool:
        """Whether ours is a float tensor."""
        return np.dtype(self.grid.dtype).kind == "f"

    @property
    def zero(self) -> int:
        return self.grid.zero_point

    @property
    def bits(self) -> int:
        return 8 * np.dtype(self.grid.dtype).itemsize

    @cached_property
    def free(self) -> np.ndarray:
        """Mask of the elements that are clipped in neither tensor."""
        low, high = self.limits
        values = (self.dumped, self.computed)
        inside = [(x > low + REAL_CODES) & (x < high - REAL_CODES) for x in values]
        return inside[0] & inside[1] & np.isfinite(self.dumped)

    @cached_property
    def off(self) -> np.ndarray:
        """Mask of the elements that differ."""
        return ~(np.abs(self.dumped - self.computed) <= EXACT)

    @property
    def picture_axes(self) -> tuple[int, int] | None:
        """Height and width; None without both."""
        shape = self.computed.shape
        if len(shape) < 3:
            return None
        axes = (1, 2) if self.is_last else (len(shape) - 2, len(shape) - 1)
        return axes if min(shape[axis] for axis in axes) > 1 else None

    @property
    def channel_axis(self) -> int:
        """The channel axis of our shape: the second, the only one, or the last of a picture."""
        return 3 if self.is_last else min(1, self.computed.ndim - 1)

    @property
    def is_last(self) -> bool:
        """Whether ours is a picture whose last axis is its colors."""
        shape = self.computed.shape
        return len(shape) == 4 and shape[3] <= MAX_COLORS < min(shape[1:3])

    @cached_property
    def in_file(self) -> tuple[np.ndarray, np.ndarray]:
        """Ours and theirs, flat, in the file's order."""
        order = self.reading.order
        return self.computed.transpose(order).ravel(), self.dumped.transpose(order).ravel()

    @cached_property
    def floor(self) -> float:
        """Our lowest value, if so many have it that it is a clamp, such as a Relu's."""
        lowest = float(self.computed.min(initial=np.inf))
        return lowest if (self.computed == lowest).mean() >= MIN_FLOOR_SHARE else -np.inf

    def clipped(self, predicted: np.ndarray) -> np.ndarray:
        return np.clip(predicted, *self.limits)

    def score(self, predicted: np.ndarray, tolerance: float = EXACT) -> float:
        """The score of a prediction in our shape."""
        return explained(self.computed, self.dumped, predicted, tolerance)

    def score_of_grid(self, predicted: np.ndarray, tolerance: float = EXACT) -> float:
        """The score for another grid: where ours is clamped, theirs may be clamped elsewhere."""
        attributes = {} if self.step is None else self.step.attributes
        low, high = (
            float(attributes.get("low", self.limits[0])),
            float(attributes.get("high", self.limits[1])),
        )
        low = max(low, self.floor)
        below = self.dumped <= np.maximum(predicted, self.computed)
        freed = np.where((self.computed <= low) & below, self.dumped, predicted)
        above = self.dumped >= np.minimum(predicted, self.computed)
        freed = np.where((self.computed >= high) & above, self.dumped, freed)
        strict = self.score(predicted, tolerance)
        return max(strict, CLAMPED * self.score(freed, tolerance))


def explained(
    computed: np.ndarray, dumped: np.ndarray, predicted: np.ndarray, tolerance: float = EXACT
) -> float:
    """The score (see the module), the better of the exact and the loose tolerance; arrays of one
    shape."""
    exact = _gain(computed, dumped, predicted, tolerance)
    return max(exact, LOOSENESS * _gain(computed, dumped, predicted, max(tolerance, LOOSE)))


def _gain(
    computed: np.ndarray, dumped: np.ndarray, predicted: np.ndarray, tolerance: float
) -> float:
    apart = int((~(np.abs(dumped - computed) <= tolerance)).sum())
    left = int((~(np.abs(dumped - predicted) <= tolerance)).sum())
    return 1.0 - left / apart if apart else 0.0


def explained_squares(computed: np.ndarray, dumped: np.ndarray, predicted: np.ndarray) -> float:
    """The share of the squared difference that a prediction explains, for changes that interpolate
    or clamp and so are not known to a code."""
    apart = float(((dumped - computed) ** 2).sum())
    left = float(((dumped - predicted) ** 2).sum())
    return 1.0 - left / apart if apart else 0.0
