"""Causes that lie outside the tensor: another input was fed, or another tensor was written."""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause

SURE_SCORE = 0.999
MIN_SHARE = 0.95  # the share of elements that agree, before a tensor is said to be another


def unlike_the_rest(evidence: Evidence) -> LikelyCause | None:
    """The values are ours, in another form than the rest of the dump is written in."""
    if evidence.unlike is None:
        return None
    kind, words = evidence.unlike
    return LikelyCause(kind, 1.0, words, {})


def other_input(evidence: Evidence) -> LikelyCause | None:
    """Ours agrees once it is fed something else: another sample, or the same one otherwise."""
    best: tuple[float, str] = (0.0, "")
    for name, codes in evidence.inputs():
        if codes.shape == evidence.ours.shape:
            best = max(best, (evidence.score(codes), name))
        if best[0] > SURE_SCORE:
            break
    score, name = best
    if score < MIN_SHARE:
        return None
    kind, _, words = name.partition(":")
    return LikelyCause(kind, score, words, {})


def stale(evidence: Evidence) -> LikelyCause | None:
    """The buffer holds another tensor of the model: it was used again before it was written out."""
    ours, theirs = evidence.in_file
    before = float((np.abs(theirs - ours) <= 0.5).mean())
    for name, codes in evidence.buffers():
        if codes.size != theirs.size or np.array_equal(codes.ravel(), evidence.ours.ravel()):
            continue
        rank = codes.ndim == len(evidence.reading.order)
        flats = [
            codes.ravel(),
            *([codes.transpose(evidence.reading.order).ravel()] if rank else []),
        ]
        share = max(float((np.abs(theirs - flat) <= 0.5).mean()) for flat in flats)
        if share > MIN_SHARE and share > before + 0.02 and np.ptp(codes) > 0:
            words = f"stale: the values are those of `{name}`: the buffer was used again"
            return LikelyCause("stale", share, words, {"tensor": name})
    return None
