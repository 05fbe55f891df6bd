"""Causes that change the values of a tensor but not their order."""

from __future__ import annotations

import math

import numpy as np

from npumake.debug.dumps.channels import by_channel, from_channels
from npumake.debug.dumps.evidence import EXACT, REAL_CODES, Evidence, LikelyCause
from npumake.debug.dumps.reading import CODES, GRID, SHIFTED

MIN_CODES = 4  # closer to the zero point, a ratio of two values is unreliable
SCALE_TOLERANCE = 2e-3  # relative, between equal scales
MIN_ELEMENTS = 4  # fewer elements of a channel are unreliable
NEARLY_ALL = 0.9  # of the elements


def described_grid(evidence: Evidence) -> LikelyCause | None:
    """The quantized values are ours, but the manifest has another grid."""
    if evidence.reading.form != GRID:
        return None
    raw = np.asarray(evidence.reading.raw, np.float64)
    flat = raw.ravel()
    score = 1.0 - float((np.abs(flat - evidence.in_file[0]) > 0.5).mean())
    own = f"{evidence.grid.scale:.6g} and zero point {evidence.zero}"
    return LikelyCause(
        "scale",
        score,
        f"its codes are ours, but the manifest has another grid: ours has scale {own}",
    )


def zero_point(evidence: Evidence) -> LikelyCause | None:
    apart = (evidence.dumped - evidence.computed)[evidence.free]
    if not apart.size:
        return None
    shift = float(np.median(apart))
    shift = shift if evidence.reading.is_real else float(np.rint(shift))
    if abs(shift) < 0.5:
        return None
    score = evidence.score_of_grid(evidence.clipped(evidence.computed + shift))
    words = f"zero point: every code is {shift:+.6g}"
    if evidence.is_float:
        return LikelyCause(
            "zero_point",
            score,
            f"zero point: every value is {shift * (evidence.grid.scale or 1.0):+.6g}",
            {"shift": shift},
        )
    if abs(shift) == 1 << (evidence.bits - 1):
        words += ", as uint8 and int8 differ" if evidence.bits == 8 else ", half the range"
    elif evidence.zero and abs(abs(shift) - abs(evidence.zero)) < REAL_CODES:
        words += f", as if the zero point {evidence.zero} were left out"
    return LikelyCause("zero_point", score, words, {"shift": shift})


def half_range(evidence: Evidence) -> LikelyCause | None:
    """The highest bit is flipped: uint8 read as int8."""
    if evidence.reading.form != CODES or evidence.is_float:
        return None
    half = 1 << (evidence.bits - 1)
    middle = half if np.dtype(evidence.grid.dtype).kind == "u" else 0
    turned = np.where(
        evidence.computed >= middle, evidence.computed - half, evidence.computed + half
    )
    words = f"zero point: every code is {half} away: unsigned codes are read as signed ones"
    return LikelyCause("zero_point", evidence.score(turned), words, {"shift": half})


def sign(evidence: Evidence) -> LikelyCause | None:
    """Two's complement read as unsigned, or vice versa."""
    if evidence.reading.form not in (CODES, SHIFTED) or evidence.is_float:
        return None
    half, full = 1 << (evidence.bits - 1), 1 << evidence.bits
    signed = np.dtype(evidence.grid.dtype).kind == "i"
    wrapped = np.where(evidence.computed < 0, evidence.computed + full, evidence.computed)
    if not signed:
        wrapped = np.where(evidence.computed >= half, evidence.computed - full, evidence.computed)
    moved = 0 if evidence.reading.form == CODES else (-half if signed else half)
    score = evidence.score(wrapped + moved)
    kind = (
        f"int{evidence.bits} read as uint{evidence.bits}"
        if signed
        else f"uint{evidence.bits} read as int{evidence.bits}"
    )
    return LikelyCause("sign", score, f"sign: {kind}", {})


def scale(evidence: Evidence) -> LikelyCause | None:
    """t - z = k (o - z), with one factor k."""
    factor = _ratio(
        evidence.computed - evidence.zero, evidence.dumped - evidence.zero, evidence.free
    )
    if factor is None or abs(factor - 1.0) * _reach(evidence) < 1.0:
        return None
    predicted = evidence.clipped(evidence.zero + factor * (evidence.computed - evidence.zero))
    tolerance = _tolerance(factor, evidence)
    words = f"scale: every value is {factor:.5g} times ours{_named(factor, evidence)}"
    return LikelyCause(
        "scale", evidence.score_of_grid(predicted, tolerance), words, {"factor": factor}
    )


def other_grid(evidence: Evidence) -> LikelyCause | None:
    """t = k o + b: another scale and another zero point."""
    x, y = evidence.computed[evidence.free], evidence.dumped[evidence.free]
    if x.size < MIN_ELEMENTS or np.ptp(x) < MIN_CODES:
        return None
    for _ in range(3):
        factor, offset = np.polyfit(x, y, 1)
        near = np.abs(y - factor * x - offset) <= max(2.0, 0.1 * np.ptp(y))
        if near.all() or near.sum() < MIN_ELEMENTS or np.ptp(x[near]) == 0.0:
            break
        x, y = x[near], y[near]
    if abs(factor - 1.0) * _reach(evidence) < 1.0:
        return None
    predicted = evidence.clipped(factor * evidence.computed + offset)
    score = 0.98 * evidence.score_of_grid(predicted, _tolerance(factor, evidence))
    moved = offset - evidence.zero * (1.0 - factor)
    words = (
        f"scale: every value is {factor:.5g} times ours and {moved:+.4g} codes away: another grid"
    )
    return LikelyCause("scale", score, words, {"factor": float(factor), "shift": float(moved)})


def channel_scales(evidence: Evidence) -> LikelyCause | None:
    """One factor per channel: weights are per-channel here and per-tensor there."""
    computed, dumped, free = (
        by_channel(x, evidence) for x in (evidence.computed, evidence.dumped, evidence.free)
    )
    rows = zip(computed, dumped, free, strict=True)
    ratios = [_ratio(a - evidence.zero, b - evidence.zero, c) for a, b, c in rows]
    known_ratios = [factor for factor in ratios if factor is not None]
    if len(known_ratios) < 2 or max(known_ratios) - min(known_ratios) < 0.02:
        return None
    factors = np.array([1.0 if factor is None else factor for factor in ratios])
    predicted = evidence.zero + factors[:, None] * (computed - evidence.zero)
    tolerance = min(0.5 + 0.5 * max(map(abs, known_ratios)), MIN_CODES)
    score = 0.95 * evidence.score(from_channels(evidence.clipped(predicted), evidence), tolerance)
    span = f"{min(known_ratios):.4g} to {max(known_ratios):.4g}"
    words = f"scale: each channel has its own factor, {span}: per channel here, per tensor there"
    return LikelyCause(
        "scale", score, words, {"lowest": min(known_ratios), "highest": max(known_ratios)}
    )


def bias(evidence: Evidence) -> LikelyCause | None:
    """One offset per channel."""
    computed, dumped, free = (
        by_channel(x, evidence) for x in (evidence.computed, evidence.dumped, evidence.free)
    )
    if len(computed) < 2 or computed.shape[1] < MIN_ELEMENTS:
        return None
    rows = zip(dumped - computed, free, strict=True)
    offsets = np.array([float(np.median(d[f] if f.sum() >= MIN_ELEMENTS else d)) for d, f in rows])
    if np.ptp(offsets) < 1.0:
        return None
    predicted = from_channels(evidence.clipped(computed + offsets[:, None]), evidence)
    low, high = float(offsets.min()), float(offsets.max())
    words = f"bias: each channel is a constant away, {low:+.4g} to {high:+.4g} codes"
    return LikelyCause(
        "bias",
        0.97 * evidence.score(predicted),
        words,
        {"lowest": low, "highest": high},
    )


def clipped(evidence: Evidence) -> LikelyCause | None:
    """Theirs are clipped to a smaller range than ours."""
    low, high = (float(end(evidence.dumped)) for end in (np.min, np.max))
    if not (np.isfinite((low, high)).all() and low < high):
        return None
    if evidence.computed.max() <= high + 0.5 and evidence.computed.min() >= low - 0.5:
        return None
    if not (np.abs(evidence.dumped - evidence.computed) <= 0.5).any():
        return None  # two limits explain any two values, so values between must agree
    score = evidence.score(np.clip(evidence.computed, low, high))
    ends = [
        f"{_real(end, evidence)} where ours reaches {_real(reach, evidence)}"
        for end, reach, beyond in (
            (high, float(evidence.computed.max()), evidence.computed.max() > high + 0.5),
            (low, float(evidence.computed.min()), evidence.computed.min() < low - 0.5),
        )
        if beyond
    ]
    words = f"clipped at {' and at '.join(ends)}"
    if low == evidence.zero and evidence.computed.min() < low:
        words += ", as a Relu does"
    return LikelyCause("clipped", score, words, {"low": low, "high": high})


def activation(evidence: Evidence) -> LikelyCause | None:
    """Ours is theirs, clamped: theirs lacks the node's fused activation."""
    attributes = {} if evidence.step is None else evidence.step.attributes
    low, high = attributes.get("low"), attributes.get("high")
    if low is None or high is None or np.isnan(evidence.dumped).any():
        return None
    beyond = (evidence.dumped < low - 0.5) | (evidence.dumped > high + 0.5)
    if not beyond.any():
        return None
    apart = np.abs(evidence.dumped - evidence.computed) > 0.5
    left = np.abs(np.clip(evidence.dumped, low, high) - evidence.computed) > 0.5
    score = 1.0 - left.sum() / max(apart.sum(), 1)
    words = f"activation: missing: {beyond.mean():.1%} lie beyond the node's clamp, {low} to {high}"
    return LikelyCause("activation", float(score), words, {"low": low, "high": high})


def rounding(evidence: Evidence) -> LikelyCause | None:
    """Every element differs by at most one code."""
    apart = evidence.dumped - evidence.computed
    if not (np.abs(apart) <= 1.0 + REAL_CODES).all():
        return None
    share = float((np.abs(apart) > 0.5).mean())
    way = "down" if (apart <= 0.5).all() else "up" if (apart >= -0.5).all() else "another way"
    words = f"rounding: {share:.1%} are one code away, rounded {way}"
    # Any difference of a code could be rounding, so that an exact explanation is likelier.
    return LikelyCause("rounding", 0.955 if share < NEARLY_ALL else 0.94, words, {"share": share})


def some_channels(evidence: Evidence) -> LikelyCause | None:
    """A few channels differ; the others agree."""
    computed, dumped = (
        by_channel(evidence.computed, evidence),
        by_channel(evidence.dumped, evidence),
    )
    share = (~(np.abs(dumped - computed) <= 1.0)).mean(axis=1)
    wrong = np.flatnonzero(share > 0.0)
    if len(computed) < 4 or not 0 < len(wrong) <= len(computed) // 2:
        return None
    names = ", ".join(map(str, wrong[:8])) + (" and more" if len(wrong) > 8 else "")
    words = f"weights: channels {names} differ, the other {len(computed) - len(wrong)} agree"
    return LikelyCause(
        "weights", 0.7, words, {"channels": [int(channel) for channel in wrong[:64]]}
    )


def _ratio(x: np.ndarray, y: np.ndarray, free: np.ndarray) -> float | None:
    """k of y = k x, by elements far enough from zero."""
    x, y = x[free], y[free]
    far = np.abs(x) >= max(MIN_CODES, 0.25 * float(np.abs(x).max(initial=0.0)))
    if far.sum() < 2:
        return None
    first = float(np.median(y[far] / x[far]))
    near = far & (np.abs(y - first * x) <= 2.0 + 0.02 * np.abs(first * x))
    weight = float(x[near] @ x[near])
    return float(x[near] @ y[near]) / weight if weight else first


def _tolerance(factor: float, evidence: Evidence) -> float:
    """Our rounding error, scaled, and theirs; of differences of a code it would explain all."""
    if (np.abs(evidence.dumped - evidence.computed) <= 1.0 + REAL_CODES).all():
        return EXACT
    return min(EXACT + 0.5 * abs(factor), MIN_CODES)


def _reach(evidence: Evidence) -> float:
    return float(np.abs(evidence.computed - evidence.zero).max(initial=0.0))


def _named(factor: float, evidence: Evidence) -> str:
    """An explanation of the factor: another tensor's scale or a power of two."""
    own = evidence.grid.scale or 1.0
    for name, other in evidence.scales.items():
        if not math.isclose(own, other, rel_tol=SCALE_TOLERANCE):
            for ratio in (own / other, other / own):
                if math.isclose(factor, ratio, rel_tol=SCALE_TOLERANCE):
                    return f", as with the scale of `{name}`, {other:.6g}"
    power = math.log2(abs(factor)) if factor else 0.0
    if power and math.isclose(power, round(power), abs_tol=SCALE_TOLERANCE) and round(power):
        return f", 2 to the power of {round(power)}"
    return ""


def _real(code: float, evidence: Evidence) -> str:
    real = (code - evidence.zero) * (evidence.grid.scale or 1.0)
    return f"{real:.6g}" if evidence.is_float else f"code {code:.6g} ({real:.4g})"
