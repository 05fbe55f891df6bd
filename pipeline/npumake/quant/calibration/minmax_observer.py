"""Min/max observer: the extremes of the tensors in the samples of one thread.

Extremes of extremes are extremes, so the distribution of samples over threads changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64
from npumake.quant.calibration.buffer_layout import Buffer, BufferBlock, Layout
from npumake.quant.calibration.statistics import Extremes
from npumake.quant.calibration.subsampling import SIDES, Side

ZERO = np.float32(0)  # -0 + 0 is 0
EXTREME_OF: Mapping[Side, np.ufunc] = {"low": np.minimum, "high": np.maximum}

SideExtremes = npt.NDArray[np.float32]  # extremes of one side


class BlockExtremes(NamedTuple):
    """Where the blocks' extremes of one side lie in one row. Sorted by tensor they form runs that
    begin at `starts`."""

    blocks: dict[int, slice]  # by block number
    order: Int64
    starts: Int64
    rows: Int64  # tensor number of each run
    before: SideExtremes  # initial value of each tensor


class MinMaxObserver:
    """Takes samples from one thread."""

    def __init__(self, layout: Layout) -> None:
        self._blocks = layout.blocks
        self._layouts = {side: _block_extremes(layout, side) for side in SIDES}
        self._own = {side: np.empty(len(t.order), np.float32) for side, t in self._layouts.items()}
        self._running: dict[tuple[int, Side], SideExtremes] = {}  # by block, of the sampled values

    @property
    def used(self) -> bool:
        return bool(self._running)

    def add(self, buffer: Buffer) -> Extremes:
        """The extremes of each tensor of a sample, (tensors,); zero may be -0."""
        for index, block in enumerate(self._blocks):
            values = buffer[block.span]
            for side in block.order.tells:
                extremes = _sampled_extremes(block, values, EXTREME_OF[side])
                own = self._own[side][self._layouts[side].blocks[index]]
                EXTREME_OF[side].reduceat(extremes, block.tensors, out=own)
                self._see((index, side), extremes)
        return Extremes(*map(self._of_tensors, SIDES))

    def _of_tensors(self, side: Side) -> SideExtremes:
        layout = self._layouts[side]
        extremes = layout.before.copy()
        if len(layout.rows):
            extremes[layout.rows] = EXTREME_OF[side].reduceat(
                self._own[side][layout.order], layout.starts
            )
        return extremes

    def _see(self, place: tuple[int, Side], extremes: SideExtremes) -> None:
        running = self._running.get(place)
        if running is None:
            self._running[place] = extremes.copy()
        else:
            EXTREME_OF[place[1]](running, extremes, out=running)

    def of_parts(self) -> Extremes:
        """The extremes of every part of the layout, over all samples."""
        return plain(Extremes(*map(self._of_parts, SIDES)))

    def _of_parts(self, side: Side) -> SideExtremes:
        places = self._layouts[side].blocks
        extremes = [
            _of_parts(self._blocks[i], self._running[i, side], EXTREME_OF[side]) for i in places
        ]
        return np.concatenate([np.empty(0, np.float32), *extremes])


def _block_extremes(layout: Layout, side: Side) -> BlockExtremes:
    telling = {at: block for at, block in enumerate(layout.blocks) if side in block.order.tells}
    rows = np.array([row for block in telling.values() for row in block.rows], np.int64)
    ends = np.cumsum([0, *(len(block.rows) for block in telling.values())]).tolist()
    places = [slice(*ends[index : index + 2]) for index in range(len(telling))]
    order = np.argsort(rows, kind="stable")
    tensors, starts = np.unique(rows[order], return_index=True)
    floors = np.array([view.floor for view in layout.views.values()], np.float32)
    return BlockExtremes(dict(zip(telling, places, strict=True)), order, starts, tensors, floors)


def _sampled_extremes(block: BufferBlock, values: Buffer, further: np.ufunc) -> SideExtremes:
    """The sampled values of a block."""
    if block.order.kind == "small":
        return values
    if block.order.kind == "large":
        return further.reduceat(values, block.parts)
    extremes = np.empty(sum(sampled.size for sampled in block.sampled), np.float32)
    start = end = 0
    for groups, depth, width in block.folds:
        whole, own = groups * depth * width, slice(end, end + groups * width)
        rows = values[start : start + whole].reshape(groups, depth, width)
        further.reduce(rows, 1, out=extremes[own].reshape(groups, width))
        start, end = start + whole, own.stop
    return extremes


def _of_parts(block: BufferBlock, values: SideExtremes, further: np.ufunc) -> SideExtremes:
    """The extremes of every part of a block, from its sampled values."""
    if block.order.kind == "large":
        return values
    extremes = []
    for sampled, start in zip(block.sampled, block.tensors.tolist(), strict=True):
        whole = values[start : start + sampled.size].reshape(sampled[:3])
        extremes.append(further.reduce(whole, 1).ravel())
    return np.concatenate(extremes)


def by_channel(layout: Layout, parts: Extremes) -> dict[str, Extremes]:
    """The extremes of the channels of each tensor that has channels, (channels,)."""
    own = {side: layout.parts_of(side) for side in SIDES}
    channels = {}
    for row, (name, view) in enumerate(layout.views.items()):
        if len(view.shape) == 4:
            sides = [np.full(view.shape[1], view.floor, np.float32)] * 2
            for index, side in enumerate(SIDES):
                if row in own[side]:
                    extremes = np.concatenate([parts[index][place] for place in own[side][row]])
                    sides[index] = EXTREME_OF[side].reduce(extremes.reshape(-1, view.shape[1]), 0)
            channels[name] = plain(Extremes(*sides))
    return channels


def plain(x: Extremes) -> Extremes:
    return Extremes(x.low + ZERO, x.high + ZERO)
