"""Decodes the outputs of SSD in its three forms to detections, with suppression per class.

    raw          offsets t (1, n, 4) to n anchors a, and scores (1, n, classes + 1)
    decoded      corners x1, y1, x2, y2 in 0..1 (1, n, 4), and the same scores
    finished     TFLite_Detection_PostProcess: corners y1, x1, y2, x2 in 0..1 (1, n, 4), classes and
                 scores (1, n), and their count (1); suppressed already

With anchors (x, y, w, h), 0..1 of the input, and variances u, v of positions and sizes,

    cx = a_x + t_x u a_w      w = a_w exp(t_w v)          of y and h likewise

The first class is background. Every other class of a box with at least MIN_SCORE is a detection of
its own. Of one class, boxes that overlap a better one by more than MAX_IOU are removed. Computed
anchors lie at the center of each cell, ceil(side / stride) cells per side, one per size, row by
row, clipped to 0..1.
Sources: Liu et al., SSD, 2016, whose thresholds these are; detection_postprocess.cc of TensorFlow
Lite, which has y before x and as scales 1 / variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

import numpy as np

from npumake.data.formats import MAX_MEMBER_BYTES, InputSpec, decoded
from npumake.detection.anchors import X_FIRST, squares
from npumake.detection.decode import Detections
from npumake.errors import ProjectError, Route
from npumake.evaluate.boxes_in_picture import Size
from npumake.frontends.tflite.detections import anchors as anchors_in
from npumake.kernels.boxes import corners, sigmoid, suppressed
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Files, Ssd

ROUTE = "evaluation.ssd"
MIN_SCORE, MAX_IOU = 0.01, 0.45
MAX_CANDIDATES, MAX_DETECTIONS = 2000, 200
MAX_EXPONENT = 50.0  # of t_w v: limits exp

Arrays = Mapping[str, np.ndarray]


def decode_ssd(
    arrays: Arrays, ssd: Ssd | None = None, anchors: np.ndarray | None = None
) -> Detections:
    """Boxes (n, 4) in 0..1, scores and classes, best first; `anchors` (n, 4) for raw outputs.
    Raises ProjectError for other outputs.

    If both outputs have four columns, the boxes are the one with `box` in its name."""
    if len(arrays) == 4:
        return _finished(arrays)
    boxes, scores = _boxes_and_scores(arrays)
    if ssd is not None and anchors is not None:
        boxes, scores = _decoded_boxes(boxes, ssd, anchors), ACTIVATIONS[ssd.activation](scores)
    return _suppressed(boxes, scores)


def anchors_of(ssd: Ssd, sources: SourceFiles, input_size: Size) -> np.ndarray:
    """(n, 4): x, y, w, h in 0..1 of an input of size `fed`. Raises ProjectError."""
    if (ssd.anchors is None) == (not ssd.sizes) or len(ssd.sizes) != len(ssd.strides):
        hint = "give a file as `anchors`, or `sizes` and `strides`, one list per stride"
        raise ProjectError("anchors must be given exactly once", Route(ROUTE), hint)
    if len(ssd.variances) != 2:
        message = "variances are [of positions, of sizes]"
        raise ProjectError(message, Route(f"{ROUTE}.variances"), "such as [0.1, 0.2]")
    if ssd.anchors is not None:
        return _of_file(sources.get(f"{ROUTE}.anchors", ()), ssd)
    levels = zip(ssd.sizes, ssd.strides, strict=True)
    return np.clip(np.concatenate([squares(*level, input_size) for level in levels]), 0, 1)


def _of_file(files: tuple[SourceFile, ...], ssd: Ssd) -> np.ndarray:
    if not files:
        hint = "paths start at the project's directory"
        raise ProjectError("no such file", Route(f"{ROUTE}.anchors"), hint)
    (file,) = files
    if file.size > MAX_MEMBER_BYTES:
        hint = "anchors are rows of four numbers"
        raise ProjectError(f"a file of more than {MAX_MEMBER_BYTES} bytes", file.name, hint)
    suffix, y_first = PurePosixPath(file.name).suffix.lower(), ssd.order == "yxhw"
    values = None
    if suffix == ".tflite":
        values, y_first = anchors_in(file.read()), True
    elif suffix == ".npy":
        values = decoded(file.read(), file.name, Files(), InputSpec((), "float32"))
    if values is None or values.shape[1:] != (4,) or values.dtype.kind not in "fiu":
        raise ProjectError("not anchors (n, 4)", file.name, "use a .npy or the model's .tflite")
    return (values[:, X_FIRST] if y_first else values).astype(np.float64)


def _decoded_boxes(offsets: np.ndarray, ssd: Ssd, anchors: np.ndarray) -> np.ndarray:
    if len(offsets) != len(anchors):
        message = f"{len(anchors)} anchors for {len(offsets)} boxes"
        raise ProjectError(message, Route(ROUTE), "check `sizes`, `strides` or the file of anchors")
    t = offsets[:, X_FIRST] if ssd.order == "yxhw" else offsets
    place, size = ssd.variances
    middles = anchors[:, :2] + t[:, :2] * place * anchors[:, 2:]
    sides = anchors[:, 2:] * np.exp(np.minimum(t[:, 2:] * size, MAX_EXPONENT))
    return corners(np.concatenate([middles, sides], axis=1).T.astype(np.float32))


def _suppressed(boxes: np.ndarray, scores: np.ndarray) -> Detections:
    rows, classes = np.nonzero(scores[:, 1:] >= MIN_SCORE)
    best = scores[rows, classes + 1]
    order = np.argsort(-best, kind="stable")[:MAX_CANDIDATES]
    rows, classes, best = rows[order], classes[order], best[order]
    indices = suppressed(boxes[rows], best, MAX_IOU, MAX_DETECTIONS, classes.astype(np.float32))
    return Detections(boxes[rows[indices]], best[indices], classes[indices])


def _finished(arrays: Arrays) -> Detections:
    """Boxes, classes, scores, count: by their names, else in this order."""
    boxes, classes, scores, count = (
        next((values for name, values in arrays.items() if word in name.lower()), by_position)
        for word, by_position in zip(("box", "class", "score", "num"), arrays.values(), strict=True)
    )
    sizes = {boxes.size // 4, classes.size, scores.size}
    if boxes.shape[-1:] != (4,) or len(sizes) > 1 or count.size != 1:
        raise _no_outputs_error(arrays)
    corner_rows = np.reshape(boxes, (-1, 4))
    valid = slice(int(np.clip(np.nan_to_num(count.item()), 0, len(corner_rows))))
    scores = scores.ravel()[valid].astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    labels = np.nan_to_num(classes.ravel()[valid]).astype(np.int64)
    return Detections(corner_rows[valid][order][:, X_FIRST], scores[order], labels[order])


def _boxes_and_scores(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    flat = {name: np.atleast_2d(np.squeeze(values)) for name, values in arrays.items()}
    fours = [name for name, values in flat.items() if values.shape[-1] == 4]
    named = [name for name in fours if "box" in name.lower()]
    box = next(iter(named or fours), None)
    rest = [name for name in flat if name != box]
    if box is None or len(rest) != 1 or flat[box].ndim != 2 or flat[rest[0]].ndim != 2:
        raise _no_outputs_error(arrays)
    boxes, scores = flat[box].astype(np.float32), flat[rest[0]].astype(np.float32)
    if len(boxes) != len(scores):
        raise _no_outputs_error(arrays)
    return boxes, scores


def _no_outputs_error(arrays: Arrays) -> ProjectError:
    shapes = ", ".join(f"{name} {list(values.shape)}" for name, values in arrays.items())
    hint = "SSD has an output of (1, n, 4) boxes and one of (1, n, classes + 1) scores"
    return ProjectError(f"not SSD outputs: {shapes}", Route("evaluation.postprocess"), hint)


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


ACTIVATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": np.asarray,
    "sigmoid": sigmoid,
    "softmax": _softmax,
}
