"""Reach: the extremes of the tensors of the samples that one thread has seen.

Extremes of extremes are extremes, so it decides nothing which thread has seen which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.kernels.arrays import Int64
from pipeline.quant.calibration.layout import Block, Buffer, Layout
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
        self._seen: list[Extremes] = []  # by block, of what is kept

    @property
    def used(self) -> bool:
        return bool(self._seen)

    def add(self, buffer: Buffer) -> Extremes:
        """The extremes of each tensor of a sample, (tensors,); zero may be -0."""
        for index, (block, place) in enumerate(zip(self._blocks, self._places, strict=True)):
            each = _each(block, buffer[block.span])
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
        found = [_of_parts(b, seen) for b, seen in zip(self._blocks, self._seen, strict=True)]
        return plain(_joined(found))


def _each(block: Block, values: Buffer) -> Extremes:
    """Of the values of a block, what is kept."""
    if block.kind == "small":
        return Extremes(values, values)
    if block.kind == "large":
        return _reduced(Extremes(values, values), block.parts)
    size = sum(kept.size for kept in block.kept)
    found = Extremes(np.empty(size, np.float32), np.empty(size, np.float32))
    start = end = 0
    for groups, depth, width in block.folds:
        whole, own = groups * depth * width, slice(end, end + groups * width)
        rows = values[start : start + whole].reshape(groups, depth, width)
        np.minimum.reduce(rows, 1, out=found.low[own].reshape(groups, width))
        np.maximum.reduce(rows, 1, out=found.high[own].reshape(groups, width))
        start, end = start + whole, own.stop
    return found


def _of_parts(block: Block, seen: Extremes) -> Extremes:
    """The extremes of every part of a block, of what is kept of it."""
    if block.kind == "large":
        return seen
    found = []
    for kept, start in zip(block.kept, block.tensors.tolist(), strict=True):
        low, high = (side[start : start + kept.size].reshape(kept[:3]) for side in seen)
        found.append(Extremes(low.min(axis=1).ravel(), high.max(axis=1).ravel()))
    return _joined(found)


def _reduced(x: Extremes, starts: Int64) -> Extremes:
    return Extremes(np.minimum.reduceat(x.low, starts), np.maximum.reduceat(x.high, starts))


def _joined(some: Sequence[Extremes]) -> Extremes:
    low, high = (np.concatenate(side) for side in zip(*some, strict=True))
    return Extremes(low, high)


def plain(x: Extremes) -> Extremes:
    return Extremes(x.low + ZERO, x.high + ZERO)
