"""Causes that leave the values as they are but move runs of them: tiles, fields, blocks, overlaps.

No order is assumed. Theirs is cut into runs, in the order of the file; a run that ours has at any
other place was moved. Runs that repeat in ours, such as those of a clamp, say nothing.
"""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause

LENGTHS = (64, 16, 8, 4)  # elements of a run, the longest first
MIN_RUNS = 8  # that were moved
MIN_COVERED = 0.4  # of the elements that differ lie in distinctive runs
MIN_DISTINCT = 2  # values of a run that is distinctive
MAX_CHANCE = 0.7  # of the runs, when their elements are exchanged between them
MAX_ELEMENTS = 1 << 20
SCORE = 0.96
MULTIPLIER = np.uint64(6364136223846793005)


def moved_runs(evidence: Evidence) -> LikelyCause | None:
    """Runs of ours at other places."""
    computed, dumped = (np.rint(x) for x in evidence.in_file)
    if computed.size > MAX_ELEMENTS or not np.isfinite(dumped).all():
        return None
    codes = [x.astype(np.int64).astype(np.uint64) for x in (computed, dumped)]
    lengths = {*LENGTHS, evidence.computed.shape[evidence.reading.order[-1]]}
    for length in sorted(lengths, reverse=True):
        match = _sources(codes[0], codes[1], length) if length > MIN_DISTINCT else None
        if match is not None and match[0] >= 0.9:
            share, places = match
            words = f"layout: the values are ours at other places, in runs of {length} elements"
            if len(np.unique(places)) < 0.9 * len(places):
                words += "; some runs repeat"
            return LikelyCause("layout", SCORE * share, words, {"run": length})
    return None


def _sources(
    computed: np.ndarray, dumped: np.ndarray, length: int
) -> tuple[float, np.ndarray] | None:
    """The share of theirs moved runs that ours has at another place, and the places."""
    whole = dumped.size // length * length
    runs, own = dumped[:whole].reshape(-1, length), computed[:whole].reshape(-1, length)
    is_moved = (runs != own).any(axis=1) & _is_distinctive(runs)
    total, inside = np.count_nonzero(computed != dumped), np.count_nonzero((runs != own)[is_moved])
    if is_moved.sum() < MIN_RUNS or inside < MIN_COVERED * total:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(computed, length)
    keys = _keys(windows)
    order = np.argsort(keys, kind="stable")
    moved = runs[is_moved]
    is_found, places = _lookup(keys, order, _keys(moved))
    shuffled = np.random.default_rng(0).permuted(moved, axis=0)  # each place has its own values
    by_chance, _ = _lookup(keys, order, _keys(shuffled))
    if by_chance.mean() > MAX_CHANCE:
        return None
    return float(is_found.mean()), places[is_found]


def _is_distinctive(runs: np.ndarray) -> np.ndarray:
    ordered = np.sort(runs, axis=1)
    return (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + 1 >= MIN_DISTINCT


def _keys(runs: np.ndarray) -> np.ndarray:
    """A number for the values of each run in their order."""
    total = np.zeros(len(runs), np.uint64)
    for at in range(runs.shape[1]):
        total = total * MULTIPLIER + runs[:, at] + np.uint64(at + 1)
    return total


def _lookup(
    keys: np.ndarray, order: np.ndarray, sought_keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the wanted keys are there, and a place of each."""
    at = np.minimum(np.searchsorted(keys, sought_keys, sorter=order), len(keys) - 1)
    places = order[at]
    return keys[places] == sought_keys, places


def lines_moved(evidence: Evidence) -> LikelyCause | None:
    """Rows, columns or channels of ours at other places: each is found as a whole."""
    best: tuple[float, int, np.ndarray] | None = None
    for axis in range(evidence.computed.ndim):
        if not 2 < evidence.computed.shape[axis] < evidence.computed.size / MIN_RUNS:
            continue
        computed, dumped = (
            np.rint(np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1))
            for x in (evidence.computed, evidence.dumped)
        )
        sources: dict[bytes, int] = {row.tobytes(): at for at, row in enumerate(computed[::-1])}
        order = np.array(
            [len(computed) - 1 - sources.get(row.tobytes(), len(computed)) for row in dumped]
        )
        if (order < 0).any():
            continue
        score = evidence.score(np.take(evidence.computed, order, axis))
        if best is None or score > best[0]:
            best = score, axis, order
    if best is None:
        return None
    score, axis, order = best
    axes = evidence.picture_axes
    name = ("rows", "columns")[axes.index(axis)] if axes and axis in axes else "channels"
    is_order = len(set(order.tolist())) == len(order)
    is_stretched = name != "channels" and not is_order and bool((np.diff(order) >= 0).all())
    moved_kind = "channel_order" if name == "channels" else "layout"
    kind = "zoom" if is_stretched else moved_kind if is_order else "partial"
    places = f"{', '.join(map(str, order[:8]))}{', ...' if len(order) > 8 else ''}"
    words = f"{kind.replace('_', ' ')}: the {name} are those of ours numbered {places}"
    figures = {"axis": name, "order": [int(at) for at in order[:64]]}
    return LikelyCause(kind, 0.975 * score, words, figures)
