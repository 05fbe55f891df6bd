"""SSD: what its three forms give → detections, suppressed per class.

    raw          offsets t (1, n, 4) to n anchors a, and scores (1, n, classes + 1)
    decoded      corners x1, y1, x2, y2 in 0..1 (1, n, 4), and such scores
    finished     TFLite_Detection_PostProcess: corners y1, x1, y2, x2 in 0..1 (1, n, 4), classes and
                 scores (1, n), and how many count (1): nothing is suppressed again

With anchors (x, y, w, h), 0..1 of the input, and variances u, v of places and of sizes,

    cx = a_x + t_x u a_w      w = a_w exp(t_w v)          of y and h likewise

The first class is background. Every other class of a box that scores SCORE is a detection of its
own; of one class, what overlaps a better one by more than IOU goes. Anchors that are computed stand
in the middle of each cell, of which a stride has ceil(side / stride) spread over the input, one per
size, row by row, and are held within 0..1.
Sources: Liu et al., SSD, 2016, whose thresholds these are; detection_postprocess.cc of TensorFlow
Lite, which has y before x and as scales 1 / variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

import numpy as np

from npumake.data.formats import MAX_MEMBER_BYTES, InputSpec, decoded
from npumake.detection.decode import Detections
from npumake.errors import ProjectError, Route
from npumake.evaluate.boxes_in_picture import Size
from npumake.frontends.tflite.detections import anchors as anchors_in
from npumake.kernels.boxes import corners, sigmoid, suppressed
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Files, Ssd

ROUTE = "evaluation.ssd"
SCORE, IOU = 0.01, 0.45
CANDIDATES, MOST = 2000, 200
LONGEST = 50.0  # of t_w v: exp of more is no box
X_FIRST = [1, 0, 3, 2]  # y, x, h, w ↔ x, y, w, h

Arrays = Mapping[str, np.ndarray]


def decode_ssd(
    arrays: Arrays, said: Ssd | None = None, anchors: np.ndarray | None = None
) -> Detections:
    """Boxes (n, 4) in 0..1, scores and classes, best first; `anchors` (n, 4) for raw outputs.
    Raises ProjectError for other outputs.

    Where both outputs have four columns, `boxes` is the one whose name says so."""
    if len(arrays) == 4:
        return _finished(arrays)
    boxes, scores = _told_apart(arrays)
    if said is not None and anchors is not None:
        boxes, scores = _placed(boxes, said, anchors), ACTIVATIONS[said.activation](scores)
    return _chosen(boxes, scores)


def anchors_of(said: Ssd, sources: SourceFiles, fed: Size) -> np.ndarray:
    """(n, 4): x, y, w, h in 0..1 of an input of size `fed`. Raises ProjectError."""
    if (said.anchors is None) == (not said.sizes) or len(said.sizes) != len(said.strides):
        hint = "`anchors` names a file of them; or give `sizes` and `strides`, one list per stride"
        raise ProjectError("anchors that are not told, or told twice", Route(ROUTE), hint)
    if len(said.variances) != 2:
        what = "variances are [of places, of sizes]"
        raise ProjectError(what, Route(f"{ROUTE}.variances"))
    if said.anchors is not None:
        return _of_file(sources.get(f"{ROUTE}.anchors", ()), said)
    levels = zip(said.sizes, said.strides, strict=True)
    return np.clip(np.concatenate([_of_level(*level, fed) for level in levels]), 0, 1)


def _of_level(sizes: tuple[float, ...], stride: int, fed: Size) -> np.ndarray:
    height, width = (-(-side // stride) for side in fed)
    y, x, size = np.meshgrid(np.arange(height), np.arange(width), np.array(sizes), indexing="ij")
    sides = [(x + 0.5) / width, (y + 0.5) / height, size / fed[1], size / fed[0]]
    return np.stack([side.ravel() for side in sides], axis=1)


def _of_file(files: tuple[SourceFile, ...], said: Ssd) -> np.ndarray:
    if not files:
        raise ProjectError("no such file", Route(f"{ROUTE}.anchors"))
    (file,) = files
    if file.size > MAX_MEMBER_BYTES:
        raise ProjectError(f"a file of more than {MAX_MEMBER_BYTES} bytes", file.name)
    suffix, y_first = PurePosixPath(file.name).suffix.lower(), said.order == "yxhw"
    found = None
    if suffix == ".tflite":
        found, y_first = anchors_in(file.read()), True
    elif suffix == ".npy":
        found = decoded(file.read(), file.name, Files(), InputSpec((), "float32"))
    if found is None or found.shape[1:] != (4,) or found.dtype.kind not in "fiu":
        raise ProjectError("no anchors (n, 4)", file.name, "a .npy, or the .tflite with its own")
    return (found[:, X_FIRST] if y_first else found).astype(np.float64)


def _placed(offsets: np.ndarray, said: Ssd, anchors: np.ndarray) -> np.ndarray:
    if len(offsets) != len(anchors):
        what = f"{len(anchors)} anchors for {len(offsets)} boxes"
        raise ProjectError(what, Route(ROUTE), "see `sizes`, `strides` or the file of anchors")
    t = offsets[:, X_FIRST] if said.order == "yxhw" else offsets
    place, size = said.variances
    middles = anchors[:, :2] + t[:, :2] * place * anchors[:, 2:]
    sides = anchors[:, 2:] * np.exp(np.minimum(t[:, 2:] * size, LONGEST))
    return corners(np.concatenate([middles, sides], axis=1).T.astype(np.float32))


def _chosen(boxes: np.ndarray, scores: np.ndarray) -> Detections:
    rows, classes = np.nonzero(scores[:, 1:] >= SCORE)
    found = scores[rows, classes + 1]
    order = np.argsort(-found, kind="stable")[:CANDIDATES]
    rows, classes, found = rows[order], classes[order], found[order]
    kept = suppressed(boxes[rows], found, IOU, MOST, classes.astype(np.float32))
    return Detections(boxes[rows[kept]], found[kept], classes[kept])


def _finished(arrays: Arrays) -> Detections:
    """Boxes, classes, scores, count: in this order, or as their names say."""
    boxes, classes, scores, count = (
        next((values for name, values in arrays.items() if word in name.lower()), given)
        for word, given in zip(("box", "class", "score", "num"), arrays.values(), strict=True)
    )
    sizes = {boxes.size // 4, classes.size, scores.size}
    if boxes.shape[-1:] != (4,) or len(sizes) > 1 or count.size != 1:
        raise _none(arrays)
    found = np.reshape(boxes, (-1, 4))
    kept = slice(int(np.clip(np.nan_to_num(count.item()), 0, len(found))))
    scores = scores.ravel()[kept].astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    labels = np.nan_to_num(classes.ravel()[kept]).astype(np.int64)
    return Detections(found[kept][order][:, X_FIRST], scores[order], labels[order])


def _told_apart(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    flat = {name: np.atleast_2d(np.squeeze(values)) for name, values in arrays.items()}
    fours = [name for name, values in flat.items() if values.shape[-1] == 4]
    named = [name for name in fours if "box" in name.lower()]
    box = next(iter(named or fours), None)
    rest = [name for name in flat if name != box]
    if box is None or len(rest) != 1 or flat[box].ndim != 2 or flat[rest[0]].ndim != 2:
        raise _none(arrays)
    boxes, scores = flat[box].astype(np.float32), flat[rest[0]].astype(np.float32)
    if len(boxes) != len(scores):
        raise _none(arrays)
    return boxes, scores


def _none(arrays: Arrays) -> ProjectError:
    shapes = ", ".join(f"{name} {list(values.shape)}" for name, values in arrays.items())
    hint = "an output of (1, n, 4) boxes and one of (1, n, classes + 1) scores"
    return ProjectError(f"no SSD: {shapes}", Route("evaluation.postprocess"), hint)


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


ACTIVATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": np.asarray,
    "sigmoid": sigmoid,
    "softmax": _softmax,
}
