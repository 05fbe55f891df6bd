"""Causes in single bits, in the order of short words, and in the sign."""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause, explained
from npumake.debug.dumps.reading import CODES

WORDS = (2, 4, 8)  # elements whose order is reversed
MIN_BIT_SHARE = 0.5  # of the differing elements that differ in a bit


def stuck_bit(evidence: Evidence) -> LikelyCause | None:
    """One bit of every code is 0, is 1, or is turned."""
    codes = _codes(evidence)
    if codes is None:
        return None
    computed, dumped = codes
    changed = (computed ^ dumped)[computed != dumped]
    best: tuple[float, int, str] = (0.0, 0, "")
    for bit in range(evidence.bits):
        mask = 1 << bit
        if not changed.size or ((changed & mask) != 0).mean() < MIN_BIT_SHARE:
            continue
        for words, values in (
            ("0", computed & ~mask),
            ("1", computed | mask),
            ("turned", computed ^ mask),
        ):
            exact = _share(computed, dumped, values)
            best = max(best, (exact, bit, words))
    score, bit, words = best
    sentence = f"bits: bit {bit} of every code is {words}"
    return LikelyCause("bits", 0.98 * score, sentence, {"bit": bit, "state": words})


def _share(computed: np.ndarray, dumped: np.ndarray, values: np.ndarray) -> float:
    """The score without a tolerance: a low bit is a code or two."""
    return 1.0 - float(np.count_nonzero(values != dumped)) / max(
        int(np.count_nonzero(computed != dumped)), 1
    )


def _codes(evidence: Evidence) -> tuple[np.ndarray, np.ndarray] | None:
    """Both as unsigned integers of the type's bits."""
    if evidence.is_float or not np.isfinite(evidence.dumped).all():
        return None
    whole = np.rint(evidence.dumped)
    if (np.abs(whole - evidence.dumped) > 0.01).any():
        return None
    low = (1 << evidence.bits) - 1
    computed, dumped = (x.astype(np.int64) & low for x in (np.rint(evidence.computed), whole))
    return computed, dumped


def word_order(evidence: Evidence) -> LikelyCause | None:
    """Elements stand in reversed order within words of two, four or eight."""
    computed, dumped = evidence.in_file
    best: tuple[float, int] = (0.0, 0)
    for count in WORDS:
        whole = computed.size // count * count
        turned = computed.copy()
        turned[:whole] = computed[:whole].reshape(-1, count)[:, ::-1].ravel()
        best = max(best, (explained(computed, dumped, turned), count))
    score, count = best
    size = 8 * count * np.asarray(evidence.reading.raw).dtype.itemsize
    words = f"byte order: each {count} elements are reversed, as in words of {size} bits"
    return LikelyCause("byte_order", 0.99 * score, words, {"elements": count})


def absolute(evidence: Evidence) -> LikelyCause | None:
    """The sign of the real value was lost, or turned."""
    steps = evidence.computed - evidence.zero
    ways = {"the magnitude of ours": np.abs(steps), "ours with the other sign": -steps}
    scores = {
        words: evidence.score(evidence.clipped(evidence.zero + x)) for words, x in ways.items()
    }
    words = max(scores, key=scores.__getitem__)
    sentence = f"sign: every value is {words}, about the zero point {evidence.zero}"
    return LikelyCause("sign", 0.99 * scores[words], sentence, {"zero_point": evidence.zero})


def overflow(evidence: Evidence) -> LikelyCause | None:
    """Values wrap around at the ends of the type instead of being clipped."""
    if evidence.is_float or evidence.reading.form != CODES:
        return None
    low, full = float(np.iinfo(evidence.grid.dtype).min), float(1 << evidence.bits)
    steps = evidence.computed - evidence.zero
    best: tuple[float, float] = (0.0, 1.0)
    for factor in _factors(evidence, steps):
        whole = np.rint(factor * steps) + evidence.zero
        wrapped = np.mod(whole - low, full) + low
        if (wrapped != whole).any():
            best = max(best, (evidence.score(wrapped, min(0.5 + 0.5 * factor, 4.0)), factor))
    score, factor = best
    words = f"overflow: {factor:.5g} times ours, and what leaves the type's range wraps around"
    return LikelyCause("overflow", score, words, {"factor": factor})


def _factors(evidence: Evidence, steps: np.ndarray) -> list[float]:
    """Whole factors, and the ratio of small values, which do not wrap."""
    small = (np.abs(steps) >= 4) & (
        np.abs(steps) <= max(8.0, float(np.quantile(np.abs(steps), 0.4)))
    )
    factors = [2.0, 3.0, 4.0, 8.0]
    if small.any():
        ratio = (evidence.dumped[small] - evidence.zero) / steps[small]
        factors.append(abs(float(np.median(ratio))))
    return factors
