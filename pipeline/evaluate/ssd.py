"""SSD: boxes and scores that the model has decoded already → detections, suppressed per class.

Of the outputs, (1, n, 4) are corners x1, y1, x2, y2 in 0..1 and (1, n, classes + 1) the scores,
background first. Every class of a box above SCORE is a detection of its own; of one class, what
overlaps a better one by more than IOU goes. The thresholds are those of the SSD paper's evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.errors import ProjectError, Route
from pipeline.kernels.boxes import suppressed

SCORE, IOU = 0.01, 0.45
CANDIDATES, MOST = 2000, 200


def decode_ssd(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (n, 4) in 0..1, scores and classes, best first. Raises ProjectError for other outputs.

    Where both outputs have four columns, `boxes` is the one whose name says so."""
    boxes, scores = _told_apart(arrays)
    rows, classes = np.nonzero(scores[:, 1:] >= SCORE)
    found = scores[rows, classes + 1]
    order = np.argsort(-found, kind="stable")[:CANDIDATES]
    rows, classes, found = rows[order], classes[order], found[order]
    kept = suppressed(boxes[rows], found, IOU, MOST, classes.astype(np.float32))
    return boxes[rows[kept]], found[kept], classes[kept]


def _told_apart(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    flat = {name: np.atleast_2d(np.squeeze(values)) for name, values in arrays.items()}
    fours = [name for name, values in flat.items() if values.shape[-1] == 4]
    named = [name for name in fours if "box" in name.lower()]
    box = next(iter(named or fours), None)
    rest = [name for name in flat if name != box]
    if box is None or len(rest) != 1 or flat[box].ndim != 2 or flat[rest[0]].ndim != 2:
        shapes = ", ".join(f"{name} {list(values.shape)}" for name, values in arrays.items())
        hint = "an output of (1, n, 4) boxes and one of (1, n, classes + 1) scores"
        raise ProjectError(f"no SSD: {shapes}", Route("evaluation.postprocess"), hint)
    return flat[box].astype(np.float32), flat[rest[0]].astype(np.float32)
