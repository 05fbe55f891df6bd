"""Buffer layout: the order of the observed tensors of one sample in one array.

One array keeps the number of NumPy calls small: each call handles all tensors of a sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.engine.fusion import bounds, is_clamp
from npumake.graph import Value, producer, shape
from npumake.kernels.arrays import Int64

Buffer = npt.NDArray[np.float32]


class ObservedTensor(NamedTuple):
    """A tensor, and the output of the observed graph that has its values. No value is below
    `floor`, which counts as the least one."""

    name: str
    output: str
    shape: tuple[int, ...]
    floor: float

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def channels(self) -> int:
        """The channels of all images; 1 for a tensor without four axes."""
        return math.prod(self.shape[:2]) if len(self.shape) == 4 else 1


def observed_tensor(value: Value, output: str) -> ObservedTensor:
    """The floor is the lower bound of a clamp at zero or above; with crossed bounds, the upper."""
    maker = producer(value)
    low, high = bounds(maker if is_clamp(maker) else None)
    floor = -math.inf if low is None else low if high is None else min(low, high)
    floor = floor if floor >= 0 else -math.inf
    return ObservedTensor(str(value.name), output, shape(value), floor)


@dataclass(frozen=True)
class BufferLayout:
    """The tensors, one after another. No shape has a zero."""

    tensors: Sequence[ObservedTensor]

    @cached_property
    def starts(self) -> list[int]:
        """The first element of each tensor, and the end."""
        return [0, *accumulate(tensor.elements for tensor in self.tensors)]

    @cached_property
    def floors(self) -> Buffer:
        """The floor of each tensor, -inf for none."""
        return np.array([tensor.floor for tensor in self.tensors], np.float32)

    @cached_property
    def channel_floors(self) -> Buffer:
        """The floor of each channel."""
        return np.repeat(self.floors, [tensor.channels for tensor in self.tensors])

    @cached_property
    def first_channels(self) -> Int64:
        """The number of each tensor's first channel."""
        ends = list(accumulate(tensor.channels for tensor in self.tensors))
        return np.array([0, *ends[:-1]])

    @cached_property
    def channel_starts(self) -> Int64:
        """The first element of each channel."""
        places = zip(self.starts, self.tensors, strict=False)
        return np.concatenate(
            [
                start + tensor.elements // tensor.channels * np.arange(tensor.channels)
                for start, tensor in places
            ]
        )

    def views(self, buffer: Buffer) -> dict[str, Buffer]:
        """The arrays of a buffer by output."""
        return {
            tensor.output: buffer[start : start + tensor.elements].reshape(tensor.shape)
            for tensor, start in zip(self.tensors, self.starts, strict=False)
        }
