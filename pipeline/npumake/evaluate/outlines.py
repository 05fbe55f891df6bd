"""COCO segmentations rasterized to the pixels that they cover, as in pycocotools.

polygons   [[x, y, x, y, ...], ...]: their union. An edge is stepped along in 1/SCALE pixels;
           where it crosses the center of a column, inside and outside swap below that point
runs       {"size": [h, w], "counts": [...]}: alternating lengths outside and inside, column by
           column; as text six bits a character, from the third on minus the one before the last
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npumake.errors import ProjectError

SCALE = 5
MAX_PIXELS = 1 << 20  # pixels
MAX_STEPS = 1 << 22  # of one polygon
MAX_RUN_CHARACTERS = 7  # of one run, in text

Size = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Region:
    """The pixels of a picture that `mask` covers, with its corner at (top, left)."""

    top: int
    left: int
    mask: np.ndarray  # (h, w), bool

    @property
    def area(self) -> int:
        return int(np.count_nonzero(self.mask))

    def shared(self, other: Region) -> int:
        """The number of pixels in both."""
        top, left = max(self.top, other.top), max(self.left, other.left)
        own_mask, other_mask = (
            outline.mask[top - outline.top :, left - outline.left :] for outline in (self, other)
        )
        height, width = (min(sides) for sides in zip(own_mask.shape, other_mask.shape, strict=True))
        return int(np.count_nonzero(own_mask[:height, :width] & other_mask[:height, :width]))


SEGMENTATION = (
    'polygons as [[x, y, x, y, x, y]], or runs as {"size": [height, width], "counts": [...]}'
)


@dataclass(frozen=True)
class Outline:
    """A segmentation and its place in the file; parsed when it is rasterized."""

    segmentation: Any
    where: str

    def region(self, size: Size) -> Region:
        """Rasterized in a picture of `size`. Raises ProjectError for a malformed segmentation."""
        try:
            return self._region(size)
        except ProjectError as error:
            error.hint = error.hint or SEGMENTATION
            raise

    def _region(self, size: Size) -> Region:
        if isinstance(self.segmentation, dict):
            return cropped(_of_runs(self.segmentation, size, self.where))
        if not isinstance(self.segmentation, list) or not self.segmentation:
            raise ProjectError("an annotation without `segmentation`", self.where)
        whole = np.zeros(size, bool)
        for polygon in self.segmentation:
            whole |= polygon_mask(_points(polygon, self.where), size)
        return cropped(whole)


def region_iou(
    regions: Sequence[Region], truths: Sequence[Region], crowd: np.ndarray
) -> np.ndarray:
    """(D, G), float64: intersection / union; for crowds, intersection / area of the detection."""
    ious = np.zeros((len(regions), len(truths)))
    areas = [region.area for region in truths]
    for row, candidate in enumerate(regions):
        area = candidate.area
        for column, truth in enumerate(truths):
            shared = candidate.shared(truth)
            either = area if crowd[column] else area + areas[column] - shared
            ious[row, column] = shared / either if shared else 0.0
    return ious


def cropped(mask: np.ndarray) -> Region:
    """(H, W) of bool, without its empty margins."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    if not len(rows):
        return Region(0, 0, np.zeros((0, 0), bool))
    top, left = int(rows[0]), int(columns[0])
    return Region(top, left, mask[top : rows[-1] + 1, left : columns[-1] + 1].copy())


def polygon_mask(points: np.ndarray, size: Size) -> np.ndarray:
    """(n, 2) corners x, y of a polygon → (H, W) of bool; the arithmetic of pycocotools' frPoly."""
    height, width = size
    corners = np.trunc(SCALE * points + 0.5).astype(np.int64)
    steps = [_edge_steps(*ends) for ends in zip(corners, np.roll(corners, -1, axis=0), strict=True)]
    u, v = np.concatenate(steps, axis=1)
    at = np.flatnonzero(np.diff(u))
    columns = (u[at + 1] - (u[at + 1] > u[at]) + 0.5) / SCALE - 0.5
    rows = np.ceil(np.clip((np.minimum(v[at], v[at + 1]) + 0.5) / SCALE - 0.5, 0, height))
    crosses = (np.floor(columns) == columns) & (columns >= 0) & (columns <= width - 1)
    turns = (columns[crosses] * height + rows[crosses]).astype(np.int64)
    odd = np.bincount(turns, minlength=height * width + 1)[: height * width] % 2
    return np.bitwise_xor.accumulate(odd.astype(bool)).reshape(width, height).T


def _edge_steps(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(2, steps): the points from corner to corner, one per step along the longer side."""
    length = np.abs(end - start)
    along = 0 if length[0] >= length[1] else 1
    if not length[along]:
        return np.empty((2, 0), np.int64)
    flipped = start[along] > end[along]
    low, high = (end, start) if flipped else (start, end)
    t = np.arange(length[along] + 1)
    slope = (high[1 - along] - low[1 - along]) / length[along]
    across = np.trunc(low[1 - along] + slope * t + 0.5).astype(np.int64)
    steps = np.stack([low[along] + t, across] if along == 0 else [across, low[along] + t])
    return steps[:, ::-1] if flipped else steps


def _points(polygon: Any, where: str) -> np.ndarray:
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        raise ProjectError("a polygon is [x, y, x, y, x, y, ...]", where, "three corners at least")
    if not all(type(x) in (int, float) and abs(x) <= MAX_PIXELS for x in polygon):
        raise ProjectError("a corner must be a number of pixels", where)
    points = np.array(polygon, np.float64).reshape(-1, 2)
    if np.abs(np.diff(points, axis=0, append=points[:1])).max(axis=1).sum() * SCALE > MAX_STEPS:
        raise ProjectError("a polygon longer than any picture", where)
    return points


def _of_runs(segmentation: dict[str, Any], size: Size, where: str) -> np.ndarray:
    counts = segmentation.get("counts")
    if segmentation.get("size") != list(size):
        raise ProjectError(f"runs of a picture that is not {size[0]} x {size[1]}", where)
    runs = _spelled(counts, where) if isinstance(counts, str) else counts
    if not isinstance(runs, list) or not all(type(run) is int and run >= 0 for run in runs):
        raise ProjectError("`counts` must be lengths of runs", where)
    if sum(runs) != math.prod(size):
        raise ProjectError(f"runs of {sum(runs)} pixels for {math.prod(size)}", where)
    values = np.arange(len(runs)) % 2 == 1
    return np.repeat(values, runs).reshape(size[1], size[0]).T


def _spelled(text: str, where: str) -> list[int]:
    """Each character is 48 + five bits, lowest first, + 32 if more follow; signed."""
    runs: list[int] = []
    value = bits = 0
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or bits >= 5 * MAX_RUN_CHARACTERS:
            raise ProjectError("`counts` are not runs", where)
        value |= (code & 31) << bits
        bits += 5
        if code & 32:
            continue
        value -= (1 << bits) if code & 16 else 0
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = bits = 0
    if bits:
        raise ProjectError("`counts` end within a run", where)
    return runs
