"""Painted scenes from seeds, and how the boxes of a detector are scored.

The scenes are those of projects/shapes-detector, which trained the model on others.

    python examples/object-detector/task.py     # writes test/, what `evaluation:` reads
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from npumake.detection.decode import Rules, decode, rules_for_map
from npumake.detection.head import with_head
from npumake.detection.metadata import Metadata
from npumake.detection.notes import metadata_of
from npumake.evaluate import ImageDetections, Truths
from npumake.evaluate.average_precision import ByClass, matches_of_boxes, precision_of
from npumake.graph import Graph
from npumake.project.sections import FilePath, ModelSection

METRIC = "mAP50, %"
HERE = Path(__file__).parent
DETECTOR = HERE.parents[1] / "projects" / "shapes-detector"
sys.path.append(str(DETECTOR))
from scenes import CLASSES, SIZE, scene  # noqa: E402

SHOWN = Rules(score=0.4)
VIEW = 184  # pixels of a picture, as wide as a tile of the gallery: names stay readable
COLORS = ("#ff5a4d", "#4da3ff", "#ffd34d", "#62e07a", "#d98cff")
EVALUATED = range(1000, 1040)  # seeds of test/
QUALITY = 92  # of its JPEG; coarser ones are not what the model was trained on


@cache
def metadata() -> Metadata:
    """What the outputs of the model mean."""
    file = DETECTOR / "model.onnx"
    graph = Graph.load(file).with_shapes()
    described = metadata_of(with_head(graph, ModelSection(FilePath(str(file))), metadata_of(graph)))
    assert described is not None
    return described


def sample(seed: int) -> tuple[np.ndarray, Truths]:
    """A scene uint8 (1, 3, SIZE, SIZE), RGB, and its boxes in pixels with their classes."""
    painted = scene(seed)
    crowd = np.zeros(len(painted.labels), bool)
    return painted.image.transpose(2, 0, 1)[None], Truths(painted.boxes, painted.labels, crowd)


def detections(
    outputs: Mapping[str, np.ndarray], rules: Rules
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (n, 4) in 0..1, scores (n,) and classes (n,)."""
    seen = decode(outputs, metadata().outputs, (SIZE, SIZE), rules)
    return seen.boxes, seen.scores, seen.classes


def score(outputs: Mapping[str, np.ndarray], truths: Truths) -> ByClass:
    """Which detections of a scene are true, by class; `total` makes the metric of many."""
    boxes, scores, classes = detections(outputs, rules_for_map(metadata()))
    return matches_of_boxes(ImageDetections(boxes * SIZE, scores, classes), truths)


def total(scores: Sequence[ByClass]) -> float:
    return 100.0 * precision_of(scores, len(CLASSES)).map50


def picture(inputs: np.ndarray, outputs: Mapping[str, np.ndarray], truths: Truths) -> np.ndarray:
    """The scene with the boxes in the colors of their classes, uint8 (VIEW, VIEW, 3)."""
    image = Image.fromarray(inputs[0].transpose(1, 2, 0)).resize((VIEW, VIEW))
    pen = ImageDraw.Draw(image)
    boxes, _, classes = detections(outputs, SHOWN)
    for (left, top, right, bottom), label in zip(VIEW * boxes, classes, strict=True):
        pen.rectangle((left, top, right, bottom), outline=COLORS[label], width=2)
        pen.text((left + 4, top + 2), CLASSES[label], COLORS[label])
    return np.asarray(image)


def caption(outputs: Mapping[str, np.ndarray], truths: Truths) -> str:
    return f"{len(detections(outputs, SHOWN)[0])} found, {len(truths.boxes)} painted"


def write_test() -> None:
    """Pictures and boxes in COCO's form."""
    (HERE / "test").mkdir(exist_ok=True)
    images, annotations = [], []
    for number, seed in enumerate(EVALUATED):
        painted, name = scene(seed), f"{number:04}.jpg"
        Image.fromarray(painted.image).save(HERE / "test" / name, quality=QUALITY, subsampling=0)
        images.append({"id": number, "file_name": name, "width": SIZE, "height": SIZE})
        for box, label in zip(painted.boxes.tolist(), painted.labels.tolist(), strict=True):
            left, top, right, bottom = box
            corner_and_size = [left, top, right - left, bottom - top]
            area = corner_and_size[2] * corner_and_size[3]
            common = {"id": len(annotations) + 1, "image_id": number, "iscrowd": 0, "area": area}
            annotations.append({**common, "category_id": label + 1, "bbox": corner_and_size})
    categories = [{"id": number + 1, "name": name} for number, name in enumerate(CLASSES)]
    document = {"images": images, "categories": categories, "annotations": annotations}
    (HERE / "instances.json").write_text(f"{json.dumps(document)}\n", encoding="utf-8")


if __name__ == "__main__":
    write_test()
