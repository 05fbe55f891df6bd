"""Causes in a part of the tensor: rows, channels or a stretch of memory that was not written, was
written twice, or still holds another tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause, explained

MAX_PART = 0.9  # of the elements; a larger part is the whole tensor
MIN_ELEMENTS = 8  # that differ
SURE_SCORE = 0.95
UNKNOWN_SCORE = 0.68  # of a part whose values are not explained
MAX_BORDER = 3  # pixels
BORDER_SCORE = 0.85
MIN_FILLED = 0.3  # of a part must differ


@dataclass(frozen=True)
class TensorPart:
    """A mask in our shape and the words for it. `axis`, `begin` and `end` are those of a slice of
    our shape; the axis of a stretch of memory is None."""

    mask: np.ndarray
    words: str
    axis: int | None
    begin: int
    end: int


def unwritten_part(evidence: Evidence) -> LikelyCause | None:
    """One value fills a part in which ours varies."""
    for part in _parts(evidence):
        inside = evidence.dumped[part.mask]
        if np.ptp(inside) == 0.0 and np.ptp(evidence.computed[part.mask]) > 0.0:
            value = float(inside[0])
            words = f"uninitialized: {part.words} are {value:.6g}, the rest is ours"
            return LikelyCause("uninitialized", 0.99, words, _figures(part) | {"value": value})
    return None


def unwritten_lines(evidence: Evidence) -> LikelyCause | None:
    """One value fills rows, columns or channels that do not follow each other."""
    if np.count_nonzero(evidence.off) < MIN_ELEMENTS:
        return None
    for axis in range(evidence.off.ndim):
        off, computed, dumped = (
            np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
            for x in (evidence.off, evidence.computed, evidence.dumped)
        )
        lines = np.flatnonzero(off.any(axis=1))
        inside = dumped[lines]
        if len(lines) <= len(off) // 2 and np.ptp(inside) == 0.0 and np.ptp(computed[lines]) > 0.0:
            name, value = _name(evidence, axis), float(inside[0, 0])
            numbers = f"{', '.join(map(str, lines[:8]))}{', ...' if len(lines) > 8 else ''}"
            words = f"uninitialized: {name} {numbers} are {value:.6g}, the rest is ours"
            figures = {"axis": axis, "lines": [int(at) for at in lines[:64]], "value": value}
            return LikelyCause("uninitialized", 0.985, words, figures)
    return None


def repeated_part(evidence: Evidence) -> LikelyCause | None:
    """A part holds another part of ours: a tile was written twice, or parts were exchanged."""
    best: LikelyCause | None = None
    for part in _parts(evidence):
        if part.axis is None:
            continue
        length = part.end - part.begin
        computed = np.moveaxis(evidence.computed, part.axis, 0)
        dumped = np.moveaxis(evidence.dumped, part.axis, 0)[part.begin : part.end]
        for begin in range(len(computed) - length + 1):
            score = 0.98 * explained(
                computed[part.begin : part.end], dumped, computed[begin : begin + length]
            )
            if begin != part.begin and score > max(SURE_SCORE, best.score if best else 0.0):
                words = f"partial: {part.words} repeat those from {begin} on, the rest is ours"
                best = LikelyCause("partial", score, words, _figures(part) | {"from": begin})
    return best


def stale_part(evidence: Evidence) -> LikelyCause | None:
    """A part holds the values of another tensor, or of another sample."""
    for part in _parts(evidence):
        predictions = [(f"`{name}`", x) for name, x in evidence.buffers()]
        for name, x in [*evidence.samples(), *predictions]:
            if x.size != evidence.computed.size:
                continue
            reshaped = x.reshape(evidence.computed.shape)
            score = evidence.score(np.where(part.mask, reshaped, evidence.computed))
            if score >= SURE_SCORE:
                words = f"stale: {part.words} hold the values of {name}, the rest is ours"
                return LikelyCause("stale", 0.98 * score, words, _figures(part) | {"source": name})
    return None


def border(evidence: Evidence) -> LikelyCause | None:
    """Only the outermost pixels differ: a window pads them otherwise, or does not compute them."""
    axes = evidence.picture_axes
    if axes is None or np.count_nonzero(evidence.off) < MIN_ELEMENTS:
        return None
    rows, columns = (evidence.computed.shape[axis] for axis in axes)
    planes = np.moveaxis(evidence.off, axes, (-2, -1)).reshape(-1, rows, columns)
    off = np.logical_or.reduce(planes, axis=0)
    for width in range(1, min(MAX_BORDER, min(rows, columns) // 4) + 1):
        if not off[width : rows - width, width : columns - width].any():
            words = f"padding: only the outermost {width} rows and columns differ"
            inside = np.moveaxis(evidence.dumped, axes, (-2, -1))[..., off]
            if np.ptp(inside) == 0.0:
                words += f", they are {inside.ravel()[0]:.6g}"
            return LikelyCause("padding", BORDER_SCORE, words, {"width": width})
    return None


def unknown_part(evidence: Evidence) -> LikelyCause | None:
    """A part differs, and nothing explains its values."""
    for part in _parts(evidence):
        count, total = int(part.mask.sum()), part.mask.size
        words = f"partial: {part.words} differ, {count} of {total} values; the rest is ours"
        return LikelyCause("partial", UNKNOWN_SCORE, words, _figures(part))
    return None


def _figures(part: TensorPart) -> dict[str, int | str]:
    return {"part": part.words, "begin": part.begin, "end": part.end}


def _parts(evidence: Evidence) -> Iterator[TensorPart]:
    """The parts outside of which nothing differs, the smallest first."""
    off = evidence.off
    if np.count_nonzero(off) < MIN_ELEMENTS:
        return
    parts = [part for axis in range(off.ndim) if (part := _slice(evidence, axis)) is not None]
    order = evidence.reading.order
    places = np.flatnonzero(off.transpose(order).ravel())
    begin, end = int(places[0]), int(places[-1]) + 1
    flat = np.zeros(off.size, bool)
    flat[begin:end] = True
    shape = [off.shape[axis] for axis in order]
    mask = flat.reshape(shape).transpose(np.argsort(order))
    parts.append(TensorPart(mask, f"elements {begin} to {end - 1} of {off.size}", None, begin, end))
    for part in sorted(parts, key=_complexity):
        inside = int(part.mask.sum())
        if inside <= MAX_PART * off.size and np.count_nonzero(off) >= MIN_FILLED * inside:
            yield part


def _complexity(part: TensorPart) -> float:
    """The size of a part; a stretch of memory is not quite as simple as rows or channels."""
    return float(part.mask.sum()) * (1.0 if part.axis is not None else 1.1)


def _slice(evidence: Evidence, axis: int) -> TensorPart | None:
    off = evidence.off
    places = np.flatnonzero(np.moveaxis(off, axis, 0).reshape(off.shape[axis], -1).any(axis=1))
    begin, end = int(places[0]), int(places[-1]) + 1
    if end - begin == off.shape[axis]:
        return None
    mask = np.zeros(off.shape, bool)
    np.moveaxis(mask, axis, 0)[begin:end] = True
    name = _name(evidence, axis)
    return TensorPart(mask, f"{name} {begin} to {end - 1} of {off.shape[axis]}", axis, begin, end)


def _name(evidence: Evidence, axis: int) -> str:
    axes = evidence.picture_axes
    if axes and axis in axes:
        return ("rows", "columns")[axes.index(axis)]
    return "channels" if axes and axis else f"indices of axis {axis}"
