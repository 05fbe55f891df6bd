"""The boxes of a detector on a picture, as `npumake run` prints and draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npumake.cli.vendors.synap_images import save_picture
from npumake.data.detections import Detection, with_detections
from npumake.data.pictures import pixels
from npumake.detection.carriers import METADATA
from npumake.detection.decode import Rules, decode
from npumake.detection.metadata import Metadata
from npumake.engine.port import Port
from npumake.errors import GraphError
from npumake.runtime.picture import closed, read, size


def label_of(labels: Sequence[str], index: int) -> str:
    return labels[index] if index < len(labels) else ""


def boxes_of(
    outputs: Mapping[str, np.ndarray], metadata: Metadata, port: Port, picture: Path, score: float
) -> list[Detection]:
    """The boxes of at least `score`, in pixels of the picture that was stretched to the port.
    Raises PipelineError."""
    sides = size(closed(port), picture.name)
    rules = Rules(score=score, class_aware=metadata.nms == "class_aware")
    try:
        detections = decode(dict(outputs), metadata.outputs, sides, rules)
    except GraphError as error:
        error.where = error.where or f"{METADATA} in the model"
        raise
    corners = np.asarray(detections.boxes) * np.tile(_pixels(picture).shape[1::-1], 2)
    return [
        Detection(int(kind), float(score), (round(x1), round(y1), round(x2 - x1), round(y2 - y1)))
        for (x1, y1, x2, y2), score, kind in zip(
            corners.tolist(), detections.scores, detections.classes, strict=True
        )
    ]


def draw_boxes(
    file: Path, picture: Path, boxes: Sequence[Detection], labels: tuple[str, ...]
) -> None:
    """Saves the picture with its boxes. Raises PipelineError."""
    save_picture(file, with_detections(_pixels(picture), boxes, labels=labels))


def box_rows(boxes: Sequence[Detection], labels: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "class": box.class_index,
            "label": label_of(labels, box.class_index),
            "score": box.confidence,
            "box": list(box.box),
        }
        for box in boxes
    ]


def _pixels(picture: Path) -> np.ndarray:
    """Height, width, RGB; turned as its EXIF says."""
    return pixels(read(picture), picture.name, "RGB", upright=True)
