"""Causes that lie outside the tensor: another input was fed, or another tensor was written."""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause

SURE = 0.999
CLEAR = 0.95  # the share of elements that agree, before a tensor is said to be another


def unlike_the_rest(seen: Evidence) -> LikelyCause | None:
    """The values are ours, in another form than the rest of the dump is written in."""
    if seen.unlike is None:
        return None
    kind, words = seen.unlike
    return LikelyCause(kind, 1.0, words, {})


def other_input(seen: Evidence) -> LikelyCause | None:
    """Ours agrees once it is fed something else: another sample, or the same one otherwise."""
    best: tuple[float, str] = (0.0, "")
    for name, codes in seen.inputs():
        if codes.shape == seen.ours.shape:
            best = max(best, (seen.score(codes), name))
        if best[0] > SURE:
            break
    score, name = best
    if score < CLEAR:
        return None
    kind, _, words = name.partition(":")
    return LikelyCause(kind, score, words, {})


def stale(seen: Evidence) -> LikelyCause | None:
    """The buffer holds another tensor of the model: it was used again before it was written out."""
    ours, theirs = seen.in_file
    before = float((np.abs(theirs - ours) <= 0.5).mean())
    for name, codes in seen.buffers():
        if codes.size != theirs.size or np.array_equal(codes.ravel(), seen.ours.ravel()):
            continue
        rank = codes.ndim == len(seen.reading.order)
        flats = [codes.ravel(), *([codes.transpose(seen.reading.order).ravel()] if rank else [])]
        share = max(float((np.abs(theirs - flat) <= 0.5).mean()) for flat in flats)
        if share > CLEAR and share > before + 0.02 and np.ptp(codes) > 0:
            words = f"stale: the values are those of `{name}`: the buffer was used again"
            return LikelyCause("stale", share, words, {"tensor": name})
    return None
