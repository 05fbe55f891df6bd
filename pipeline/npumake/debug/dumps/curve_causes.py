"""A cause in the node's function: equal codes of ours are equal codes of theirs.

The map from ours to theirs is taken from half of the elements and judged by the other half.
"""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence, LikelyCause

MIN_ELEMENTS = 64
MAX_CODES_SHARE = 0.25  # distinct codes for each element
MIN_CODES = 4
MIN_STEPS = 12  # distinct values of a curve
SCORE, MONOTONE_SCORE = 0.94, 0.88
POINTWISE = frozenset({"lookup", "quantize", "rescale"})


def curve(evidence: Evidence) -> LikelyCause | None:
    """A table, an activation or a gamma of its own."""
    if not np.isfinite(evidence.dumped).all():
        return None
    if evidence.computed.size < MIN_ELEMENTS or _is_diverse(evidence.computed):
        return _monotone(evidence)
    best: tuple[float, str, np.ndarray] | None = None
    for words, x in _arguments(evidence):
        predicted = _by_function(x, evidence.dumped)
        score = 0.0 if predicted is None else evidence.score(predicted)
        if predicted is not None and (best is None or score > best[0]):
            best = score, words, x
    if best is None:
        return None
    score, words, x = best
    op = "" if evidence.step is None else evidence.step.op
    kind = "table" if op == "lookup" else "curve"
    off = np.unique(np.rint(x[evidence.off]))
    sentence = f"{kind}: every value is a function of {words}, but of another one than ours"
    if off.size:
        sentence += f"; it differs for codes {off[0]:.6g} to {off[-1]:.6g}"
    figures = {"lowest": float(off[0]), "highest": float(off[-1])} if off.size else {}
    return LikelyCause(kind, SCORE * score, sentence, figures)


def _is_diverse(x: np.ndarray) -> bool:
    """Whether too few elements share a code to show a function."""
    return bool(np.unique(np.rint(x)).size > MAX_CODES_SHARE * x.size)


def _monotone(evidence: Evidence) -> LikelyCause | None:
    """Larger values of ours are larger ones of theirs: a curve through all of them."""
    order = np.lexsort((evidence.dumped.ravel(), np.rint(evidence.computed).ravel()))
    computed, dumped = (x.ravel()[order] for x in (evidence.computed, evidence.dumped))
    if np.unique(np.rint(computed)).size < MIN_STEPS or np.unique(dumped).size < MIN_CODES:
        return None
    share = float((np.maximum.accumulate(dumped) - dumped <= 1.0).mean())
    words = "curve: theirs grow where ours grow, but neither by one factor nor by one offset"
    return LikelyCause("curve", MONOTONE_SCORE * share if share > 0.99 else 0.0, words, {})


def _arguments(evidence: Evidence) -> list[tuple[str, np.ndarray]]:
    """The node's input, where each value is a function of one; ours."""
    arguments = [("ours", evidence.computed)]
    node = evidence.node
    if node is not None and node.step.op in POINTWISE and len(node.step.inputs) == 1:
        (x,) = node.values.values()
        if x.shape == evidence.computed.shape and x.dtype.kind in "iu":
            arguments.insert(0, ("the input's code", x.astype(np.float64)))
    return arguments


def _by_function(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Theirs, predicted by the map of the other half; None for too many codes to know the map."""
    codes, at = np.unique(np.rint(x).ravel(), return_inverse=True)
    if not MIN_CODES <= codes.size <= MAX_CODES_SHARE * x.size:
        return None
    flat, half = y.ravel(), np.random.default_rng(0).random(x.size) < 0.5
    predicted = np.empty_like(flat)
    for half_mask in (half, ~half):
        counts = np.bincount(at[half_mask], minlength=codes.size)
        sums = np.bincount(at[half_mask], flat[half_mask], codes.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.rint(sums / counts)
        filled = np.interp(codes, codes[counts > 0], means[counts > 0])
        predicted[~half_mask] = filled[at[~half_mask]]
    return predicted.reshape(y.shape)
