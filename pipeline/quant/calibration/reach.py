"""Reach: the extremes of the tensors of the samples that one thread has seen.

Extremes of extremes are extremes, so it decides nothing which thread has seen which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.kernels.arrays import Int64
from pipeline.quant.calibration.layout import Buffer, Layout
from pipeline.quant.calibration.statistics import Extremes

ZERO = np.float32(0)  # added to -0 it makes plain zero


class Reach:
    """Filled sample by sample, by one thread."""

    def __init__(self, layout: Layout) -> None:
        self._blocks = layout.blocks
        rows = [row for block in self._blocks for row in block.rows]
        self._firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        ends = np.cumsum([0, *(len(block.rows) for block in self._blocks)]).tolist()
        self._places = [slice(*ends[index : index + 2]) for index in range(len(self._blocks))]
        self._own = Extremes(np.empty(ends[-1], np.float32), np.empty(ends[-1], np.float32))
        self._seen: list[Extremes] = []  # by block, of its elements or of its parts

    @property
    def used(self) -> bool:
        return bool(self._seen)

    def add(self, buffer: Buffer) -> Extremes:
        """The extremes of each tensor of a sample, (tensors,); zero may be -0."""
        for index, (block, place) in enumerate(zip(self._blocks, self._places, strict=True)):
            values = buffer[block.span]
            each = Extremes(values, values)
            if not block.small:
                each = _reduced(each, block.parts)
            np.minimum.reduceat(each.low, block.tensors, out=self._own.low[place])
            np.maximum.reduceat(each.high, block.tensors, out=self._own.high[place])
            self._see(index, each)
        return _reduced(self._own, self._firsts)

    def _see(self, index: int, each: Extremes) -> None:
        if index == len(self._seen):
            self._seen.append(Extremes(each.low.copy(), each.high.copy()))
            return
        seen = self._seen[index]
        np.minimum(seen.low, each.low, out=seen.low)
        np.maximum(seen.high, each.high, out=seen.high)

    def of_parts(self) -> Extremes:
        """The extremes of every part of the layout, over all samples."""
        pairs = zip(self._blocks, self._seen, strict=True)
        found = [_reduced(seen, b.parts) if b.small else seen for b, seen in pairs]
        return plain(_joined(found))


def _reduced(x: Extremes, starts: Int64) -> Extremes:
    return Extremes(np.minimum.reduceat(x.low, starts), np.maximum.reduceat(x.high, starts))


def _joined(some: Sequence[Extremes]) -> Extremes:
    low, high = (np.concatenate(side) for side in zip(*some, strict=True))
    return Extremes(low, high)


def plain(x: Extremes) -> Extremes:
    return Extremes(x.low + ZERO, x.high + ZERO)
