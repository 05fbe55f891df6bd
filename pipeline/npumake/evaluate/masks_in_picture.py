"""Maps masks of the prototypes' size to the pixels of the original picture.

    l = coefficients @ prototypes, one logit per cell
    pixel (y, x) is set if its center lies in the box and l, interpolated there linearly, is above
    0, i.e. its sigmoid above one half; beyond the last cell's center, l is that cell's

A pixel's center is mapped through the resizing steps (boxes_in_picture), then to the cells, which
cover the whole model input at any stride.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.detection.decode import Detections
from npumake.errors import ProjectError, Route
from npumake.evaluate.average_precision import ByClass, Overlaps, Truths, best_of, matches_of
from npumake.evaluate.boxes_in_picture import PixelTransform, Size
from npumake.evaluate.outlines import Region, cropped, region_iou


class Frame(NamedTuple):
    """The mapping from the picture to the model's input; sizes are (height, width)."""

    transform: PixelTransform
    picture: Size
    input_size: Size


def matches_of_masks(
    detections: Detections, boxes: np.ndarray, true: Truths, frame: Frame
) -> ByClass:
    """Matches of one image by masks; `boxes` (n, 4) are the `detections`' boxes in pixels of the
    picture. Raises ProjectError for a model without masks and for truths without outlines."""
    if detections.coefficients is None or detections.protos is None:
        hint = "map50 is the metric of boxes"
        raise ProjectError("the model has no masks", Route("evaluation.metric"), hint)
    kinds, cells = detections.protos.shape[0], detections.protos.shape[1:]
    flat = detections.protos.reshape(kinds, -1)
    overlap = np.zeros((len(boxes), len(true.labels)))
    for label in np.unique(true.labels):
        selected = best_of(detections.scores, detections.classes, label)
        truths = np.flatnonzero(true.labels == label)
        masks = [
            mask_in_picture((detections.coefficients[n] @ flat).reshape(cells), boxes[n], frame)
            for n in selected
        ]
        regions = [true.outlines[n].region(frame.picture) for n in truths]
        overlap[np.ix_(selected, truths)] = region_iou(masks, regions, true.crowd[truths])
    return matches_of(
        Overlaps(detections.scores, detections.classes, true.labels, true.crowd, overlap)
    )


def mask_in_picture(logits: np.ndarray, box: np.ndarray, frame: Frame) -> Region:
    """`logits` (h, w) cover the model's input; `box` is x1, y1, x2, y2 in pixels of the picture."""
    transform, picture, input_size = frame
    x1, y1, x2, y2 = box
    top, low = _lines(y1, y2, picture[0])
    left, right = _lines(x1, x2, picture[1])
    if low <= top or right <= left:
        return Region(0, 0, np.zeros((0, 0), bool))
    values = logits
    for axis, (first, last) in enumerate(((top, low), (left, right))):
        middles = np.arange(first, last) + 0.5
        on_input = (middles * transform.scale[axis] + transform.shift[axis]) / input_size[axis]
        values = _read(values, axis, on_input * logits.shape[axis] - 0.5)
    inside = cropped(values > 0)
    return Region(top + inside.top, left + inside.left, inside.mask)


def _lines(low: float, high: float, size: int) -> tuple[int, int]:
    """The first pixel whose center is in [low, high), and the one after the last."""
    first, last = np.clip(np.ceil(np.array([low, high]) - 0.5), 0, size)
    return int(first), int(last)


def _read(values: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    """`values` (h, w) interpolated linearly along `axis` at the cell positions `places`."""
    places = np.clip(places, 0, values.shape[axis] - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, values.shape[axis] - 1)
    share = (places - below).reshape((-1, 1) if axis == 0 else (1, -1))
    return values.take(below, axis) * (1 - share) + values.take(above, axis) * share
