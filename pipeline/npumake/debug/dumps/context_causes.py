"""Causes outside the tensor: another input, or another tensor was written."""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause

SURE_SCORE = 0.999
MIN_SHARE = 0.95  # of the elements must agree with another tensor


def unlike_the_rest(evidence: Evidence) -> LikelyCause | None:
    """The values are ours, in another form than the rest of the dump."""
    if evidence.unlike is None:
        return None
    kind, words = evidence.unlike
    return LikelyCause(kind, 1.0, words, {})


def other_input(evidence: Evidence) -> LikelyCause | None:
    """Ours agrees for another input: another sample, or the same one preprocessed differently."""
    best: tuple[float, str] = (0.0, "")
    for name, codes in evidence.inputs():
        if codes.shape == evidence.computed.shape:
            best = max(best, (evidence.score(codes), name))
        if best[0] > SURE_SCORE:
            break
    score, name = best
    if score < MIN_SHARE:
        return None
    kind, _, words = name.partition(":")
    return LikelyCause(kind, score, words, {})


def stale(evidence: Evidence) -> LikelyCause | None:
    """The buffer holds another tensor: it was reused before it was dumped."""
    computed, dumped = evidence.in_file
    before = float((np.abs(dumped - computed) <= 0.5).mean())
    for name, codes in evidence.buffers():
        if codes.size != dumped.size or np.array_equal(codes.ravel(), evidence.computed.ravel()):
            continue
        rank = codes.ndim == len(evidence.reading.order)
        flats = [
            codes.ravel(),
            *([codes.transpose(evidence.reading.order).ravel()] if rank else []),
        ]
        share = max(float((np.abs(dumped - flat) <= 0.5).mean()) for flat in flats)
        if share > MIN_SHARE and share > before + 0.02 and np.ptp(codes) > 0:
            words = f"stale: the values are those of `{name}`: the buffer was reused"
            return LikelyCause("stale", share, words, {"tensor": name})
    return None
