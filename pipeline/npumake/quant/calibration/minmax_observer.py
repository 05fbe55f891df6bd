"""Min/max observer: exact extremes of every channel over the samples of one thread, and of every
tensor by sample.

Extremes of extremes are extremes, so the distribution of samples over threads changes nothing.
"""

from __future__ import annotations

import numpy as np

from npumake.errors import StageError
from npumake.quant.calibration.buffer_layout import Buffer, BufferLayout
from npumake.quant.calibration.statistics import Extremes

ZERO = np.float32(0)  # -0 + 0 is 0


class NotFiniteError(StageError):
    """NaN or infinity in an observed tensor."""


class MinMaxObserver:
    """Takes samples from one thread."""

    def __init__(self, layout: BufferLayout) -> None:
        count = len(layout.channel_starts)
        self._layout = layout
        self._channels = Extremes(np.full(count, np.inf, "f"), np.full(count, -np.inf, "f"))
        self.samples: dict[int, Extremes] = {}  # of each tensor, (tensors,), by sample number

    def add(self, number: int, buffer: Buffer) -> None:
        """Raises NotFiniteError."""
        channels = _reduced(Extremes(buffer, buffer), self._layout.channel_starts)
        tensors = _reduced(channels, self._layout.first_channels)
        self._refuse_infinite(tensors)
        self._channels |= channels
        self.samples[number] = tensors

    def merge(self, other: MinMaxObserver) -> None:
        """Adds the samples of another thread."""
        self._channels |= other._channels
        self.samples |= other.samples

    def by_tensor(self) -> Extremes:
        """The extremes of each tensor over all samples, (tensors,)."""
        extremes = _reduced(self._channels, self._layout.first_channels)
        return _floored(extremes, self._layout.floors)

    def by_sample(self) -> Extremes:
        """The extremes of each tensor in each sample, (samples, tensors), in the order of the
        samples' numbers."""
        low, high = zip(*(self.samples[number] for number in sorted(self.samples)), strict=True)
        return _floored(Extremes(np.stack(low), np.stack(high)), self._layout.floors)

    def by_channel(self) -> dict[str, Extremes]:
        """The extremes of the channels of each tensor with four axes, (channels,)."""
        layout, channels = self._layout, {}
        extremes = _floored(self._channels, layout.channel_floors)
        for tensor, first in zip(layout.tensors, layout.first_channels, strict=True):
            if len(tensor.shape) == 4:
                own = slice(first, first + tensor.channels)
                low, high = (side[own].reshape(tensor.shape[:2]) for side in extremes)
                channels[tensor.name] = Extremes(low.min(axis=0), high.max(axis=0))
        return channels

    def _refuse_infinite(self, extremes: Extremes) -> None:
        finite = np.isfinite(extremes.low) & np.isfinite(extremes.high)
        if not finite.all():
            row = int(np.argmin(finite))
            span = f"{extremes.low[row]} .. {extremes.high[row]}"
            message = f"the float model gives no finite number: {span}"
            raise NotFiniteError(message, self._layout.tensors[row].name)


def _reduced(x: Extremes, starts: np.ndarray) -> Extremes:
    """The extremes of the stretches that begin at `starts`."""
    return Extremes(np.minimum.reduceat(x.low, starts), np.maximum.reduceat(x.high, starts))


def _floored(x: Extremes, floors: np.ndarray) -> Extremes:
    """The extremes with the floors of clamps as least values, and without -0."""
    low = np.where(floors >= 0, floors, x.low)
    return Extremes(low + ZERO, x.high + ZERO)
