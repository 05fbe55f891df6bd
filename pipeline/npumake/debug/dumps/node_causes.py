"""Causes that run the program again: a changed node, another sample, or another operand."""

from __future__ import annotations

from npumake.debug.dumps.evidence import Evidence, LikelyCause

SURE_SCORE = 0.999
MIN_SHARE = 0.95  # of the elements must agree with another sample


def changed_node(evidence: Evidence) -> LikelyCause | None:
    """The node, or one before it that the dump lacks, computes something else."""
    best: LikelyCause | None = None
    for kind, sentence, figures, values in evidence.reruns():
        if values.shape != evidence.computed.shape:
            continue
        score = evidence.score(values)
        if best is None or score > best.score:
            best = LikelyCause(kind, score, sentence, figures)
        if score > SURE_SCORE:
            break
    return best


def other_sample(evidence: Evidence) -> LikelyCause | None:
    """The tensor is that of another sample, though the tensors before it are not."""
    for name, values in evidence.samples():
        if values.shape != evidence.computed.shape:
            continue
        score = evidence.score(values)
        if score >= MIN_SHARE:
            words = f"other sample: the values are those of {name}, from another inference"
            return LikelyCause("other_sample", score, words, {"sample": name})
    return None
