"""Causes in how a node finishes its sums: its offset, factor, rounding, sign and clamp.

They compare theirs with our result before its clamp (npumake.debug.dumps.last_node), so that a bias
or a factor shows behind a Relu, too.
"""

from __future__ import annotations

import math

import numpy as np

from npumake.debug.dumps.channels import by_channel, from_channels
from npumake.debug.dumps.evidence import EXACT, Evidence, LikelyCause

MIN_ELEMENTS = 4  # of a channel
MIN_REACH = 4.0  # codes from the zero point, for a ratio
MIN_APART = 0.02  # of a factor from 1
WHOLE_FACTORS = (2.0, 3.0, 4.0, 8.0)


def sum_offset(evidence: Evidence) -> LikelyCause | None:
    """Another bias: each channel of the sums is a constant away."""
    sums = evidence.unclamped
    if sums is None or sums.ndim < 2:
        return None
    rows, dumped, inside = _rows(evidence, sums)
    moved = [
        float(np.median((b - a)[c])) if c.sum() >= MIN_ELEMENTS else 0.0
        for a, b, c in zip(rows, dumped, inside, strict=True)
    ]
    offsets = np.array(moved)
    if np.abs(offsets).max(initial=0.0) < EXACT:
        return None
    score = evidence.score(_finished(evidence, from_channels(rows + offsets[:, None], evidence)))
    low, high = float(offsets.min()), float(offsets.max())
    words = f"bias: before its clamp, each channel is a constant away, {low:+.4g} to {high:+.4g}"
    return LikelyCause("bias", 0.975 * score, f"{words} codes", {"lowest": low, "highest": high})


def sum_scale(evidence: Evidence) -> LikelyCause | None:
    """Another factor: the sums are multiplied with one constant."""
    sums = evidence.unclamped
    factor = None if sums is None else _factor(evidence, sums)
    if sums is None or factor is None or factor <= 0.0 or abs(factor - 1.0) < MIN_APART:
        return None
    predicted = _finished(evidence, evidence.zero + factor * (sums - evidence.zero))
    words = f"scale: before its clamp, every value is {factor:.5g} times ours"
    power = math.log2(factor)
    if round(power) and math.isclose(power, round(power), abs_tol=2e-3):
        words += f", 2 to the power of {round(power)}"
    return LikelyCause("scale", 0.99 * evidence.score(predicted), words, {"factor": factor})


def sum_grid(evidence: Evidence) -> LikelyCause | None:
    """Each channel has its own factor and offset, as with a normalization applied twice."""
    sums = evidence.unclamped
    sums = evidence.computed if sums is None else sums
    if sums.ndim < 2:
        return None
    rows, dumped, inside = _rows(evidence, sums)
    lines = [_line(a[c], b[c]) for a, b, c in zip(rows, dumped, inside, strict=True)]
    fits = [line for line in lines if line is not None]
    if len(fits) < 2:
        return None
    factors, offsets = (
        np.array([d if x is None else x[at] for x in lines]) for at, d in ((0, 1.0), (1, 0.0))
    )
    predicted = from_channels(rows * factors[:, None] + offsets[:, None], evidence)
    score = 0.95 * evidence.score(_finished(evidence, predicted), 1.0)
    span = f"{min(x[0] for x in fits):.4g} to {max(x[0] for x in fits):.4g}"
    words = f"scale: each channel has its own factor, {span}, and its own offset"
    return LikelyCause("scale", score, words, {"channels": len(fits)})


def sum_rounding(evidence: Evidence) -> LikelyCause | None:
    """The sums are rounded by another rule."""
    sums, zero = evidence.unclamped, evidence.zero
    if sums is None or not (np.abs(evidence.dumped - evidence.computed) <= 1.5).all():
        return None
    steps = sums - zero
    ways = {
        "down": np.floor(steps),
        "up": np.ceil(steps),
        "toward zero": np.trunc(steps),
        "away from zero at halves": np.trunc(steps + np.copysign(0.5, steps)),
        "up at halves": np.floor(steps + 0.5),
    }
    scores = {words: evidence.score(_finished(evidence, x + zero)) for words, x in ways.items()}
    words = max(scores, key=scores.__getitem__)
    sentence = f"rounding: the node's sums are rounded {words}"
    return LikelyCause("rounding", 0.99 * scores[words], sentence, {"way": words})


def sum_sign(evidence: Evidence) -> LikelyCause | None:
    """The node's sums have the other sign."""
    sums = evidence.unclamped
    if sums is None:
        return None
    score = evidence.score(_finished(evidence, 2.0 * evidence.zero - sums))
    return LikelyCause("sign", 0.985 * score, "sign: the node's sums have the other sign", {})


def sum_overflow(evidence: Evidence) -> LikelyCause | None:
    """Sums, or a multiple, wrap around at the ends of the type before the node's clamp."""
    sums = evidence.unclamped
    if sums is None:
        return None
    low, full = float(np.iinfo(evidence.grid.dtype).min), float(1 << evidence.bits)
    own = _factor(evidence, sums)
    best: tuple[float, float] = (0.0, 1.0)
    for factor in (1.0, *WHOLE_FACTORS, *(() if own is None else (abs(own),))):
        whole = np.rint(factor * (sums - evidence.zero)) + evidence.zero
        wrapped = np.mod(whole - low, full) + low
        if (wrapped != whole).any():
            predicted = _finished(evidence, wrapped)
            best = max(best, (evidence.score(predicted, max(0.5 + 0.1 * factor, 0.6)), factor))
    score, factor = best
    words = f"overflow: {factor:.5g} times the node's sums wraps around at the ends of the type"
    return LikelyCause("overflow", 0.985 * score, words, {"factor": factor})


def _finished(evidence: Evidence, values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), *_ends(evidence))


def _ends(evidence: Evidence) -> tuple[float, float]:
    attributes = {} if evidence.step is None else evidence.step.attributes
    low, high = (attributes.get(name) for name in ("low", "high"))
    ends = evidence.limits
    return (ends[0] if low is None else float(low)), (ends[1] if high is None else float(high))


def _inside(evidence: Evidence) -> np.ndarray:
    """Mask of their elements off the node's clamp."""
    low, high = _ends(evidence)
    return (evidence.dumped > low + EXACT) & (evidence.dumped < high - EXACT)


def _rows(evidence: Evidence, sums: np.ndarray) -> tuple[np.ndarray, ...]:
    """Our sums, theirs, and what is off the clamp, by channel."""
    arrays = (sums, evidence.dumped, _inside(evidence))
    return tuple(by_channel(x, evidence) for x in arrays)


def _factor(evidence: Evidence, sums: np.ndarray) -> float | None:
    """The factor of most elements far enough from zero."""
    inside = _inside(evidence)
    x, y = sums[inside] - evidence.zero, evidence.dumped[inside] - evidence.zero
    far = np.abs(x) >= max(MIN_REACH, 0.25 * float(np.abs(x).max(initial=0.0)))
    if far.sum() < MIN_ELEMENTS:
        return None
    first = float(np.median(y[far] / x[far]))
    near = far & (np.abs(y - first * x) <= 1.5)
    weight = float(x[near] @ x[near])
    return float(x[near] @ y[near]) / weight if weight else first


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """The factor and offset of most elements."""
    if x.size < 2 * MIN_ELEMENTS or np.ptp(x) < MIN_REACH:
        return None
    factor, offset = np.polyfit(x, y, 1)
    near = np.abs(y - factor * x - offset) <= 2.0
    if near.sum() >= 2 * MIN_ELEMENTS and np.ptp(x[near]) >= MIN_REACH:
        factor, offset = np.polyfit(x[near], y[near], 1)
    return float(factor), float(offset)
