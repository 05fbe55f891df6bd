"""Causes that change the values of a tensor and leave each where it is."""

from __future__ import annotations

import math

import numpy as np

from npumake.debug.dumps.evidence import REAL_CODES, Evidence, LikelyCause
from npumake.debug.dumps.reading import CODES, GRID, SHIFTED

LEVER = 4  # codes from the zero point, from which on a ratio of two codes means something
SIMILAR = 2e-3  # relative, of two scales that are one
FEW = 4  # elements of a channel that tell something of it
EVERY = 0.9  # of the elements


def described_grid(seen: Evidence) -> LikelyCause | None:
    """The codes are ours, and the manifest names another grid than ours."""
    if seen.reading.form != GRID:
        return None
    raw = np.asarray(seen.reading.raw, np.float64)
    laid = raw.ravel()
    score = 1.0 - float((np.abs(laid - seen.in_file[0]) > 0.5).mean())
    own = f"{seen.grid.scale:.6g} and zero point {seen.zero}"
    return LikelyCause(
        "scale",
        score,
        f"its codes are ours, but its grid is described as another: ours has scale {own}",
    )


def zero_point(seen: Evidence) -> LikelyCause | None:
    apart = (seen.theirs - seen.ours)[seen.free]
    if not apart.size:
        return None
    shift = float(np.median(apart))
    shift = shift if seen.reading.is_real else float(np.rint(shift))
    if abs(shift) < 0.5:
        return None
    score = seen.score_of_grid(seen.clipped(seen.ours + shift))
    words = f"zero point: every code is {shift:+.6g}"
    if seen.is_float:
        return LikelyCause(
            "zero_point",
            score,
            f"zero point: every value is {shift * (seen.grid.scale or 1.0):+.6g}",
            {"shift": shift},
        )
    if abs(shift) == 1 << (seen.bits - 1):
        words += ", as uint8 and int8 differ" if seen.bits == 8 else ", half the range"
    elif seen.zero and abs(abs(shift) - abs(seen.zero)) < REAL_CODES:
        words += f", as if the zero point {seen.zero} were left out"
    return LikelyCause("zero_point", score, words, {"shift": shift})


def half_range(seen: Evidence) -> LikelyCause | None:
    """The highest bit turned: uint8 read as int8."""
    if seen.reading.form != CODES or seen.is_float:
        return None
    half = 1 << (seen.bits - 1)
    middle = half if np.dtype(seen.grid.dtype).kind == "u" else 0
    turned = np.where(seen.ours >= middle, seen.ours - half, seen.ours + half)
    words = f"zero point: every code is {half} away: unsigned codes are read as signed ones"
    return LikelyCause("zero_point", seen.score(turned), words, {"shift": half})


def sign(seen: Evidence) -> LikelyCause | None:
    """Two's complement read without its sign, or the other way round."""
    if seen.reading.form not in (CODES, SHIFTED) or seen.is_float:
        return None
    half, full = 1 << (seen.bits - 1), 1 << seen.bits
    signed = np.dtype(seen.grid.dtype).kind == "i"
    wrapped = np.where(seen.ours < 0, seen.ours + full, seen.ours)
    if not signed:
        wrapped = np.where(seen.ours >= half, seen.ours - full, seen.ours)
    moved = 0 if seen.reading.form == CODES else (-half if signed else half)
    score = seen.score(wrapped + moved)
    kind = (
        f"int{seen.bits} read as uint{seen.bits}"
        if signed
        else f"uint{seen.bits} read as int{seen.bits}"
    )
    return LikelyCause("sign", score, f"sign: {kind}", {})


def scale(seen: Evidence) -> LikelyCause | None:
    """t - z = k (o - z): one factor for all."""
    factor = _ratio(seen.ours - seen.zero, seen.theirs - seen.zero, seen.free)
    if factor is None or abs(factor - 1.0) * _reach(seen) < 1.0:
        return None
    predicted = seen.clipped(seen.zero + factor * (seen.ours - seen.zero))
    tolerance = min(0.5 + 0.5 * abs(factor), LEVER)  # what ours was rounded to, magnified
    words = f"scale: every value is {factor:.5g} times ours{_named(factor, seen)}"
    return LikelyCause("scale", seen.score_of_grid(predicted, tolerance), words, {"factor": factor})


def other_grid(seen: Evidence) -> LikelyCause | None:
    """t = k o + b: another scale and another zero point."""
    x, y = seen.ours[seen.free], seen.theirs[seen.free]
    if x.size < FEW or np.ptp(x) < LEVER:
        return None
    for _ in range(3):
        factor, offset = np.polyfit(x, y, 1)
        near = np.abs(y - factor * x - offset) <= max(2.0, 0.1 * np.ptp(y))
        if near.all() or near.sum() < FEW or np.ptp(x[near]) == 0.0:
            break
        x, y = x[near], y[near]
    if abs(factor - 1.0) * _reach(seen) < 1.0:
        return None
    predicted = seen.clipped(factor * seen.ours + offset)
    score = 0.98 * seen.score_of_grid(predicted, min(0.5 + 0.5 * abs(factor), LEVER))
    moved = offset - seen.zero * (1.0 - factor)
    words = (
        f"scale: every value is {factor:.5g} times ours and {moved:+.4g} codes away: another grid"
    )
    return LikelyCause("scale", score, words, {"factor": float(factor), "shift": float(moved)})


def channel_scales(seen: Evidence) -> LikelyCause | None:
    """A factor for each channel, as weights have that are per channel here and per tensor there."""
    ours, theirs, free = (_by_channel(x, seen) for x in (seen.ours, seen.theirs, seen.free))
    rows = zip(ours, theirs, free, strict=True)
    found = [_ratio(a - seen.zero, b - seen.zero, c) for a, b, c in rows]
    known = [factor for factor in found if factor is not None]
    if len(known) < 2 or max(known) - min(known) < 0.02:
        return None
    factors = np.array([1.0 if factor is None else factor for factor in found])
    predicted = seen.zero + factors[:, None] * (ours - seen.zero)
    tolerance = min(0.5 + 0.5 * max(map(abs, known)), LEVER)
    score = 0.95 * seen.score(_back(seen.clipped(predicted), seen), tolerance)
    span = f"{min(known):.4g} to {max(known):.4g}"
    words = f"scale: each channel has its own factor, {span}: per channel here, per tensor there"
    return LikelyCause("scale", score, words, {"lowest": min(known), "highest": max(known)})


def bias(seen: Evidence) -> LikelyCause | None:
    """An offset for each channel."""
    ours, theirs, free = (_by_channel(x, seen) for x in (seen.ours, seen.theirs, seen.free))
    if len(ours) < 2 or ours.shape[1] < FEW:
        return None
    rows = zip(theirs - ours, free, strict=True)
    offsets = np.array([float(np.median(d[f] if f.sum() >= FEW else d)) for d, f in rows])
    if np.ptp(offsets) < 1.0:
        return None
    predicted = _back(seen.clipped(ours + offsets[:, None]), seen)
    low, high = float(offsets.min()), float(offsets.max())
    words = f"bias: each channel is a constant away, {low:+.4g} to {high:+.4g} codes"
    return LikelyCause(
        "bias",
        0.97 * seen.score(predicted),
        words,
        {"lowest": low, "highest": high},
    )


def clipped(seen: Evidence) -> LikelyCause | None:
    """Theirs end where ours go on."""
    low, high = (float(end(seen.theirs)) for end in (np.min, np.max))
    if not (np.isfinite((low, high)).all() and low < high):
        return None
    if seen.ours.max() <= high + 0.5 and seen.ours.min() >= low - 0.5:
        return None
    if not (np.abs(seen.theirs - seen.ours) <= 0.5).any():
        return None  # two ends explain any two values: what lies between them must be ours
    score = seen.score(np.clip(seen.ours, low, high))
    ends = [
        f"{_real(end, seen)} where ours reaches {_real(reach, seen)}"
        for end, reach, beyond in (
            (high, float(seen.ours.max()), seen.ours.max() > high + 0.5),
            (low, float(seen.ours.min()), seen.ours.min() < low - 0.5),
        )
        if beyond
    ]
    words = f"clipped at {' and at '.join(ends)}"
    if low == seen.zero and seen.ours.min() < low:
        words += ", as a Relu does"
    return LikelyCause("clipped", score, words, {"low": low, "high": high})


def activation(seen: Evidence) -> LikelyCause | None:
    """Ours is theirs, clamped: theirs lacks the activation that is fused into the node."""
    said = {} if seen.step is None else seen.step.attributes
    low, high = said.get("low"), said.get("high")
    if low is None or high is None or np.isnan(seen.theirs).any():
        return None
    beyond = (seen.theirs < low - 0.5) | (seen.theirs > high + 0.5)
    if not beyond.any():
        return None
    apart = np.abs(seen.theirs - seen.ours) > 0.5
    left = np.abs(np.clip(seen.theirs, low, high) - seen.ours) > 0.5
    score = 1.0 - left.sum() / max(apart.sum(), 1)
    words = f"activation: missing: {beyond.mean():.1%} lie beyond the node's clamp, {low} to {high}"
    return LikelyCause("activation", float(score), words, {"low": low, "high": high})


def rounding(seen: Evidence) -> LikelyCause | None:
    """At most one code away, everywhere."""
    apart = seen.theirs - seen.ours
    if not (np.abs(apart) <= 1.0 + REAL_CODES).all():
        return None
    share = float((np.abs(apart) > 0.5).mean())
    way = "down" if (apart <= 0.5).all() else "up" if (apart >= -0.5).all() else "another way"
    words = f"rounding: {share:.1%} are one code away, rounded {way}"
    score = 1.0 if share < EVERY else 0.94  # nearly all are rather a zero point
    return LikelyCause("rounding", score, words, {"share": share})


def some_channels(seen: Evidence) -> LikelyCause | None:
    """A few channels differ, the others agree."""
    ours, theirs = _by_channel(seen.ours, seen), _by_channel(seen.theirs, seen)
    share = (~(np.abs(theirs - ours) <= 1.0)).mean(axis=1)
    wrong = np.flatnonzero(share > 0.0)
    if len(ours) < 4 or not 0 < len(wrong) <= len(ours) // 2:
        return None
    names = ", ".join(map(str, wrong[:8])) + (" and more" if len(wrong) > 8 else "")
    words = f"weights: channels {names} differ, the other {len(ours) - len(wrong)} agree"
    return LikelyCause("weights", 0.7, words, {"channels": [int(each) for each in wrong[:64]]})


def _ratio(x: np.ndarray, y: np.ndarray, free: np.ndarray) -> float | None:
    """k of y = k x, by the elements that are far enough from zero to tell."""
    x, y = x[free], y[free]
    far = np.abs(x) >= max(LEVER, 0.25 * float(np.abs(x).max(initial=0.0)))
    if far.sum() < 2:
        return None
    first = float(np.median(y[far] / x[far]))
    near = far & (np.abs(y - first * x) <= 2.0 + 0.02 * np.abs(first * x))
    weight = float(x[near] @ x[near])
    return float(x[near] @ y[near]) / weight if weight else first


def _reach(seen: Evidence) -> float:
    return float(np.abs(seen.ours - seen.zero).max(initial=0.0))


def _named(factor: float, seen: Evidence) -> str:
    """What the factor is, where it is a known one."""
    own = seen.grid.scale or 1.0
    for name, other in seen.scales.items():
        if not math.isclose(own, other, rel_tol=SIMILAR):
            for ratio in (own / other, other / own):
                if math.isclose(factor, ratio, rel_tol=SIMILAR):
                    return f", as with the scale of `{name}`, {other:.6g}"
    power = math.log2(abs(factor)) if factor else 0.0
    if power and math.isclose(power, round(power), abs_tol=SIMILAR) and round(power):
        return f", 2 to the power of {round(power)}"
    return ""


def _real(code: float, seen: Evidence) -> str:
    real = (code - seen.zero) * (seen.grid.scale or 1.0)
    return f"{real:.6g}" if seen.is_float else f"code {code:.6g} ({real:.4g})"


def _by_channel(values: np.ndarray, seen: Evidence) -> np.ndarray:
    moved = np.moveaxis(np.atleast_1d(values), seen.channel_axis, 0)
    return moved.reshape(len(moved), -1)


def _back(rows: np.ndarray, seen: Evidence) -> np.ndarray:
    """The inverse of _by_channel."""
    shape = seen.ours.shape
    moved = [shape[seen.channel_axis], *(n for a, n in enumerate(shape) if a != seen.channel_axis)]
    return np.moveaxis(rows.reshape(moved), 0, seen.channel_axis)
