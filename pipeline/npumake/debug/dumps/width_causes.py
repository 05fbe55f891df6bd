"""Causes in the bits of a value: too few, in another order, or not written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause
from npumake.debug.dumps.reading import CODES, REAL

MIN_BITS_OF_EVIDENCE = 20.0  # a chance of one in a million
MIN_SHARE = 0.999  # of the elements must lie on the coarse grid
MIN_FITTED = 8  # elements of a line
MAX_NARROW_CODES = 2.0  # a narrow board rounds each of its layers so
MAX_UNEXPLAINED = 0.1  # of the variance


def width(evidence: Evidence) -> LikelyCause | None:
    """The values are on a coarser grid: 16 bits computed in 8, or 8 in 4."""
    if evidence.is_float:
        return None
    for step, bits in _steps(evidence.bits):
        for anchor in {0, evidence.zero}:
            share = _on_grid(evidence, step, anchor)
            if share is not None:
                left = f"{bits} bits of {evidence.bits} are left"
                words = f"width: all values are multiples of {step:.6g} codes: {left}"
                return LikelyCause("width", share, words, {"step": step, "bits": bits})
    return None


def narrow(evidence: Evidence) -> LikelyCause | None:
    """A grid of fewer bits, with its own scale and zero point: 8 bits under a plan of 16."""
    bits = evidence.bits // 2
    if evidence.is_float or bits < 8:
        return None
    step = _lattice(evidence, bits)
    ends = float(evidence.dumped.min()), float(evidence.dumped.max())
    inside = evidence.free & (evidence.dumped > ends[0]) & (evidence.dumped < ends[1])
    x, y = evidence.computed[inside], evidence.dumped[inside] / step
    if step <= 0 or x.size < MIN_FITTED or np.ptp(x) < 1 << bits // 2:
        return None
    factor, offset = _fitted(x, y)
    if not 0.0 < factor < 4.0 / (1 << bits):
        return None
    predicted = np.clip(factor * evidence.computed + offset, ends[0] / step, ends[1] / step)
    left = np.abs(evidence.dumped / step - predicted)
    share = float((left <= MAX_NARROW_CODES).mean())
    varied = float(np.var(left)) / max(float(np.var(evidence.dumped / step)), 1e-9)
    words = f"width: {bits} bits of {evidence.bits} are left: one step is {1 / factor:.5g} of ours"
    words += f", zero point {offset:.4g}" if step == 1.0 else ""
    score = share if varied < MAX_UNEXPLAINED else 0.0
    return LikelyCause("width", score, words, {"step": 1 / factor, "bits": bits})


def _lattice(evidence: Evidence, bits: int) -> float:
    """The distance of their values: 1 for codes of the narrow type, else that of a coarse grid; 0
    without one."""
    raw = np.asarray(evidence.reading.raw)
    if raw.dtype.kind in "iu":
        is_narrow = 8 * raw.dtype.itemsize <= bits or np.ptp(evidence.dumped) < 1 << bits
        return 1.0 if is_narrow else 0.0
    values = np.unique(np.rint(64 * evidence.dumped) / 64)
    if not 2 < values.size <= 1 << bits:
        return 0.0
    gaps = np.diff(values)
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    apart = np.abs(gaps / step - np.rint(gaps / step))
    return step if step >= 4.0 and (apart < 0.1).all() else 0.0


def _fitted(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """A line through most of the points."""
    for _ in range(3):
        factor, offset = (float(v) for v in np.polyfit(x, y, 1))
        left = np.abs(y - factor * x - offset)
        near = left <= max(1.0, 3.0 * float(np.median(left)))
        if near.all() or np.ptp(x[near]) == 0.0:
            break
        x, y = x[near], y[near]
    return factor, offset


def high_byte(evidence: Evidence) -> LikelyCause | None:
    """Only the high bits, as values of the narrow type."""
    if evidence.is_float or _spread(evidence.computed) < 4 * _spread(evidence.dumped):
        return None
    for step in _narrowings(evidence.bits):
        apart = np.abs(evidence.dumped * step - evidence.computed)
        share = float((apart <= step).mean())
        if (
            share > MIN_SHARE
            and float(np.log2(step)) * np.unique(evidence.dumped).size > MIN_BITS_OF_EVIDENCE / 2
        ):
            width_left = f"{evidence.bits // 2} bits of {evidence.bits} are left"
            words = f"width: the values are ours divided by {step:.6g}: {width_left}"
            return LikelyCause("width", share, words, {"step": step, "bits": evidence.bits // 2})
    return None


def low_byte(evidence: Evidence) -> LikelyCause | None:
    """Only the low bits, signed or unsigned."""
    if evidence.is_float or evidence.reading.form not in (CODES, REAL):
        return None
    half = 1 << (evidence.bits // 2)
    whole = np.rint(evidence.computed)
    low = np.mod(whole, half)
    forms = {
        "the lower half of the bits": low,
        "the lower half of the bits, signed": np.where(low >= half // 2, low - half, low),
    }
    scores = {words: evidence.score(predicted) for words, predicted in forms.items()}
    words = max(scores, key=scores.__getitem__)
    return LikelyCause(
        "width",
        scores[words],
        f"width: the values are {words} of ours",
        {"bits": evidence.bits // 2},
    )


def byte_order(evidence: Evidence) -> LikelyCause | None:
    raw = np.asarray(evidence.reading.raw)
    if raw.dtype.itemsize < 2:
        return None
    swapped = (
        raw.astype(raw.dtype.newbyteorder("="), copy=False).byteswap().astype(np.float64).ravel()
    )
    if evidence.reading.form == REAL:
        swapped = swapped / (evidence.grid.scale or 1.0) + evidence.zero
    computed, dumped = evidence.in_file
    if swapped.size != computed.size:
        return None
    with np.errstate(invalid="ignore"):
        apart, left = (np.abs(values - computed) for values in (dumped, swapped))
    score = 1.0 - float((~(left <= 1.0)).sum()) / max(int((~(apart <= 1.0)).sum()), 1)
    return LikelyCause(
        "byte_order",
        score,
        f"byte order: with the bytes of each {raw.dtype.name} swapped, the values are ours",
        {},
    )


def not_written(evidence: Evidence) -> LikelyCause | None:
    """NaN, one constant value, or an unwritten end of the buffer."""
    nan = float((~np.isfinite(evidence.dumped)).mean())
    if nan:
        return LikelyCause(
            "uninitialized", 1.0, f"uninitialized: {nan:.1%} are NaN or infinite", {"share": nan}
        )
    computed, dumped = evidence.in_file
    if np.ptp(dumped) == 0.0 and np.ptp(computed) > 0.0:
        value = float(dumped[0])
        words = f"uninitialized: every value is {value:.6g}"
        is_end = value in evidence.limits and value not in (0.0, evidence.zero)
        if is_end:  # sums that saturate would show so, too
            words += ", an end of the type: not written, or saturated"
        return LikelyCause("uninitialized", 0.9 if is_end else 1.0, words, {"value": value})
    is_constant = dumped == dumped[-1]
    written = int(dumped.size - np.argmin(is_constant[::-1]))
    rest = computed[written:]
    if (
        written < 0.95 * dumped.size
        and np.ptp(rest) > 0.0
        and (np.abs(computed - dumped)[:written] <= 1.0).mean() > MIN_SHARE
    ):
        words = (
            f"uninitialized: ours up to element {written} of {computed.size}, then {dumped[-1]:.6g}"
        )
        return LikelyCause("uninitialized", 1.0, words, {"written": written})
    return None


def _steps(bits: int) -> Iterator[tuple[float, int]]:
    """(step, bits left) of coarser grids in values of this width, coarsest first."""
    half = bits // 2
    full, part = 1 << bits, 1 << half
    for step in ((full / 2 - 1) / (part / 2 - 1), (full - 1) / (part - 1), full / part):
        yield step, half
    for left in range(2 if bits == 8 else half - 2, bits):
        yield float(1 << (bits - left)), left


def _narrowings(bits: int) -> Iterator[float]:
    return (step for step, left in _steps(bits) if left == bits // 2)


def _on_grid(evidence: Evidence, step: float, anchor: int) -> float | None:
    """The share of elements within a step of ours, if all of theirs are multiples of the step and
    ours are not; None if that may be chance."""
    slack = 0.01 if float(step).is_integer() and not evidence.reading.is_real else 0.5
    dumped, computed = evidence.dumped - anchor, evidence.computed - anchor
    low, high = (end - anchor for end in evidence.limits)
    free = (dumped > low) & (dumped < high)
    values, counts = np.unique(dumped[free], return_counts=True)
    spread = int(counts.sum() - counts.max(initial=0))  # without the most frequent value
    apart = np.abs(dumped - computed) > 0.5
    if (
        not apart.any()
        or values.size < 2
        or spread * np.log2(step / (2 * slack + 1)) < MIN_BITS_OF_EVIDENCE
    ):
        return None
    on, own = (
        float((np.abs(x - np.rint(x / step) * step) <= slack).mean())
        for x in (dumped[free], computed[apart])
    )
    near = float((np.abs(dumped - computed) <= step).mean())
    return near if on >= MIN_SHARE and own < 0.9 and near > 0.98 else None


def _spread(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0))
