"""Causes that move values without changing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause, explained
from npumake.debug.dumps.reading import ALIGNMENTS

AXES = {3: "NCL", 4: "NCHW", 5: "NCDHW"}  # of ours
BLOCKS = (4, 8, 16, 32)
MAX_RANK = 5
MIN_ELEMENTS = 4  # fewer elements do not identify a channel or row
MIN_ROW_ELEMENTS = 32  # fewer elements do not show padded rows


def layout(evidence: Evidence) -> LikelyCause | None:
    """The memory order of the axes differs from the file's shape or the rest of the dump."""
    rank = evidence.computed.ndim
    if not 2 <= rank <= MAX_RANK:
        return None
    computed, dumped = evidence.in_file
    best: tuple[float, str] = (0.0, "")
    for words, flat in _laid_out(evidence.computed):
        if not np.array_equal(flat, computed):
            best = max(best, (explained(computed, dumped, flat), words), key=lambda entry: entry[0])
    score, words = best
    letters = _letters(evidence.reading.order)
    return LikelyCause(
        "layout",
        score,
        f"layout: the values are in the order {words}, not {letters}",
        {"order": words, "expected": letters},
    )


def channel_order(evidence: Evidence) -> LikelyCause | None:
    """The channels are in another order, such as BGR for RGB."""
    axis = evidence.channel_axis
    count = evidence.computed.shape[axis] if evidence.computed.ndim else 1
    if count < 2:
        return None
    order = np.arange(count)[::-1]
    score = evidence.score(np.take(evidence.computed, order, axis))
    words = "reversed (RGB and BGR)" if count == 3 else "reversed"
    match = _matching(evidence, axis)
    if (
        match is not None
        and (other := evidence.score(np.take(evidence.computed, match, axis))) > score
    ):
        turn = int(match[0])
        rolled = np.array_equal(match, (np.arange(count) + turn) % count)
        score, order = other, match
        words = (
            f"rotated by {turn}"
            if rolled
            else f"{', '.join(map(str, order[:8]))}{', ...' if count > 8 else ''}"
        )
    return LikelyCause(
        "channel_order",
        score,
        f"channel order: the {count} channels are {words}",
        {"order": [int(x) for x in order[:64]]},
    )


def stride(evidence: Evidence) -> LikelyCause | None:
    """Rows are padded in the board's memory, but were dumped as if they were not."""
    computed, dumped = evidence.in_file
    dims = [evidence.computed.shape[axis] for axis in evidence.reading.order]
    best: tuple[float, int, int] = (0.0, 0, 0)
    for row in {int(np.prod(dims[-n:])) for n in (1, 2) if len(dims) >= n}:
        lengths = {-(-(row + extra) // a) * a for a in ALIGNMENTS for extra in (0, 1)}
        for length in lengths - {row}:
            places = (np.arange(computed.size) // row) * length + np.arange(computed.size) % row
            inside = places < computed.size
            if row >= MIN_ELEMENTS and inside.sum() >= max(MIN_ROW_ELEMENTS, 2 * row):
                equal_share = float(
                    (np.abs(dumped[places[inside]] - computed[inside]) <= 1.0).mean()
                )
                best = max(best, (equal_share, row, length))
    share, row, length = best
    before = float((np.abs(dumped - computed) <= 1.0).mean())
    score = (share - before) / (1.0 - before) if share > 0.98 and before < 1.0 else 0.0
    words = f"padding: rows of {row} values lie {length} apart in memory"
    return LikelyCause("padding", score, words, {"row": row, "stride": length})


def _laid_out(computed: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Every axis order, flat, and channels in blocks."""
    for order in permutations(range(computed.ndim)):
        yield _letters(order), computed.transpose(order).ravel()
    if computed.ndim != 4:
        return
    n, c, h, w = computed.shape
    for block in BLOCKS:
        if c % block == 0 and c > block:
            blocked = computed.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2)
            yield f"NC{block}HW{block}", blocked.ravel()


def _letters(order: Sequence[int]) -> str:
    names = AXES.get(len(order), "ABCDEFGH")
    return "".join(names[axis] for axis in order)


def _matching(evidence: Evidence, axis: int) -> np.ndarray | None:
    """For each of their channels the equal one of ours; None unless it is a permutation."""
    computed, dumped = (
        np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
        for x in (evidence.computed, evidence.dumped)
    )
    if computed.shape[1] < MIN_ELEMENTS:
        return None
    channels: dict[bytes, list[int]] = {}
    for index, row in enumerate(np.rint(computed)):
        channels.setdefault(row.tobytes(), []).append(index)
    candidates = [(channels.get(row.tobytes()) or [-1]) for row in np.rint(dumped)]
    order = np.array([axes.pop(0) if len(axes) > 1 else axes[0] for axes in candidates])
    is_order = np.array_equal(np.sort(order), np.arange(len(order)))
    moved = dumped[order != np.arange(len(order))]
    varies = (moved != moved[:, :1]).any(axis=1)  # a constant channel may stand for another one
    return order if is_order and varies.size and varies.mean() >= 0.5 else None
