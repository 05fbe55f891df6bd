"""Causes that move a picture: mirrored, rotated, shifted, zoomed, or at another address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause, explained, explained_squares

MAX_CHANNELS = 16  # that find a shift; those with the largest variance
PEAKS = 6  # of the correlation that are tried
MIN_OVERLAP = 0.2  # of the elements
MIN_WINDOW = 0.4  # of the elements, where the border is left out
MIN_SCORE = 0.6
NEAR_PIXELS = 2  # pixels that padding on the other side shifts by
ZOOMS = (1 / 4, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9)
FACTORS = (*ZOOMS, *(1 / factor for factor in reversed(ZOOMS)), 1.2, 5 / 6)
WINDOW = 0.97  # factor on scores of a part that leaves out the border
APPROXIMATE = 0.93  # factor on scores by squares


def orientation(evidence: Evidence) -> LikelyCause | None:
    """Mirrored, or rotated by quarters."""
    axes = evidence.picture_axes
    if axes is None:
        return None
    computed, dumped = evidence.in_file
    best: tuple[float, str] = (0.0, "")
    for words, picture in _oriented(evidence.computed, axes):
        flat = picture.transpose(evidence.reading.order).ravel()
        best = max(best, (explained(computed, dumped, flat), words), key=lambda pair: pair[0])
    score, words = best
    sentence = f"orientation: the picture is {words}"
    return LikelyCause("orientation", 0.99 * score, sentence, {"turned": words})


def _oriented(x: np.ndarray, axes: tuple[int, int]) -> Iterator[tuple[str, np.ndarray]]:
    rows, columns = axes
    yield "mirrored top to bottom", np.flip(x, rows)
    yield "mirrored left to right", np.flip(x, columns)
    yield "rotated by 180 degrees", np.flip(x, axes)
    yield "rotated by 90 degrees to the left", np.rot90(x, 1, axes)
    yield "rotated by 90 degrees to the right", np.rot90(x, 3, axes)


def shifted(evidence: Evidence) -> LikelyCause | None:
    """The picture is rows and columns away, with or without the border coming in again."""
    axes = evidence.picture_axes
    if axes is None:
        return None
    a, b = (np.moveaxis(x, axes, (-2, -1)) for x in (evidence.computed, evidence.dumped))
    a, b = (x.reshape(-1, *x.shape[-2:]) for x in (a, b))
    best: tuple[float, tuple[int, ...]] = (0.0, (0, 0))
    for move in _peaks(*_strongest(a, b)):
        left, right = (_overlap(x, move, way) for x, way in ((a, 1), (b, -1)))
        before = _overlap(a, move, -1)
        if right.size >= MIN_OVERLAP * b.size:
            whole = max(explained(a, b, x) for x in _filled(a, move, evidence.zero))
            part = WINDOW * explained(before, right, left) if _is_most(right, b) else 0.0
            score = max(whole, part)
            best = max(best, (score, move), key=lambda pair: (pair[0], -sum(map(abs, pair[1]))))
    score, (dy, dx) = best
    if score < MIN_SCORE:
        return None
    is_near = max(abs(dy), abs(dx)) <= NEAR_PIXELS
    reason = ", as with padding on the other side" if is_near else ""
    words = f"the picture is shifted by {dy:+d} rows and {dx:+d} columns{reason}"
    kind = "padding" if is_near else "shift"
    figures = {"rows": int(dy), "columns": int(dx)}
    return LikelyCause(kind, 0.98 * score, f"{kind}: {words}", figures)


def _is_most(part: np.ndarray, whole: np.ndarray) -> bool:
    return part.size >= MIN_WINDOW * whole.size


def _filled(x: np.ndarray, move: tuple[int, ...], zero: int) -> Iterator[np.ndarray]:
    """The whole shifted picture: what comes in is the other side, or zero points."""
    rolled = np.roll(x, move, axis=(1, 2))
    yield rolled
    filled = np.full_like(x, zero)
    _overlap(filled, move, -1)[...] = _overlap(x, move, 1)
    yield filled


def offset(evidence: Evidence) -> LikelyCause | None:
    """The buffer was read from another address."""
    computed, dumped = (x[None] for x in evidence.in_file)
    if not np.isfinite(dumped).all():
        return None
    best: tuple[float, int] = (0.0, 0)
    for (move,) in _peaks(computed, dumped):
        left, right = (_overlap(x, (move,), way) for x, way in ((computed, 1), (dumped, -1)))
        before = _overlap(computed, (move,), -1)
        if right.size >= MIN_OVERLAP * dumped.size:
            best = max(best, (explained(before, right, left), move))
    score, move = best
    words = f"offset: the values lie {abs(move)} elements too {'late' if move > 0 else 'early'}"
    return None if score < MIN_SCORE else LikelyCause("offset", 0.97 * score, words, {"by": move})


def zoomed(evidence: Evidence) -> LikelyCause | None:
    """The picture is larger or smaller, about its middle or its first corner."""
    axes = evidence.picture_axes
    if axes is None or min(evidence.computed.shape[axis] for axis in axes) < 4:
        return None
    a, b = (np.moveaxis(x, axes, (-2, -1)) for x in (evidence.computed, evidence.dumped))
    a, b = _strongest(*(x.reshape(-1, *x.shape[-2:]) for x in (a, b)))
    best: tuple[float, float, str] = (0.0, 1.0, "")
    for factor, about in product(FACTORS, ("middle", "corner")):
        for is_linear in (False, True):
            predicted, rows, columns = _resampled(a, factor, about, is_linear)
            computed, dumped = (x[:, rows][:, :, columns] for x in (a, b))
            squares = APPROXIMATE * explained_squares(computed, dumped, predicted)
            score = max(0.98 * explained(computed, dumped, predicted), squares)
            best = max(best, (score, factor, about))
    score, factor, about = best
    words = f"zoom: the picture is {factor:.3g} times as large, about its {about}"
    return LikelyCause("zoom", score, words, {"factor": factor})


def _resampled(
    x: np.ndarray, factor: float, about: str, is_linear: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The zoomed picture, and its rows and columns that lie within ours."""
    taps = [_taps(n, factor, about, is_linear) for n in x.shape[-2:]]
    (low, high, weight, rows), (left, right, part, columns) = taps
    down = x[:, low] * (1 - weight)[:, None] + x[:, high] * weight[:, None]
    return down[:, :, left] * (1 - part) + down[:, :, right] * part, rows, columns


def _taps(
    n: int, factor: float, about: str, is_linear: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The two elements of ours and the weight of the second, for each element that has them."""
    if not is_linear and about == "corner":
        places = np.floor(np.arange(n) / factor + 1e-9)
    else:
        margin = (n - n / factor) / 2 if about == "middle" else 0.0
        places = (np.arange(n) + 0.5) / factor + margin - 0.5
        places = places if is_linear else np.rint(places)
    inside = np.flatnonzero((places >= -0.5) & (places <= n - 0.5))
    clipped = np.clip(places[inside], 0, n - 1)
    low = np.floor(clipped).astype(np.int64)
    return low, np.minimum(low + 1, n - 1), clipped - low, inside


def _strongest(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The channels of ours with the largest variance."""
    order = np.argsort(-a.reshape(len(a), -1).var(axis=1), kind="stable")[:MAX_CHANNELS]
    return a[order], b[order]


def _peaks(a: np.ndarray, b: np.ndarray) -> list[tuple[int, ...]]:
    """The likeliest shifts of b against a over all axes but the first."""
    if not np.isfinite(b).all():
        return []
    axes, shape = tuple(range(1, a.ndim)), a.shape[1:]
    sizes = [2 * n for n in shape]
    left, right = (x - x.mean(axis=axes, keepdims=True) for x in (a, b))
    product_ = np.fft.rfftn(left, sizes, axes).conj() * np.fft.rfftn(right, sizes, axes)
    total = np.fft.irfftn(product_.sum(axis=0), sizes, tuple(range(len(shape))))
    flat = np.argpartition(-total.ravel(), min(PEAKS, total.size - 1))[:PEAKS]
    places = zip(*np.unravel_index(np.sort(flat), total.shape), strict=True)
    moves = [
        tuple(int(p) if p < n else int(p) - 2 * n for p, n in zip(place, shape, strict=True))
        for place in places
    ]
    fits = (move for move in moves if all(abs(d) < n for d, n in zip(move, shape, strict=True)))
    return [move for move in fits if any(move)]


def _overlap(x: np.ndarray, move: tuple[int, ...], way: int) -> np.ndarray:
    """The part of ours (way 1) or theirs (way -1) that the other has, too."""
    parts = [
        slice(max(-way * d, 0), n + min(-way * d, 0))
        for d, n in zip(move, x.shape[1:], strict=True)
    ]
    return x[(slice(None), *parts)]
