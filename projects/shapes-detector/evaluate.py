"""Mean average precision of artifacts on held-out scenes, and what each lost against the float one.

    python projects/shapes-detector/evaluate.py [ARTIFACT ...]   (default: what `doit` left in out/)

Of each scene the model says output0 (1, 4 + classes + MASKS, A): per cell a box (centre and size,
as shares of the image), a score per class, and mask coefficients. Split, it says them apart, and
boxes in cells. A cell's class is its best; a cell that overlaps a better one of its class by more
than OVERLAP says nothing new.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scenes import CLASSES, SIZE, TEST, Scene, scenes

from pipeline.evaluate import AveragePrecision, Detections, Truths, average_precision, box_iou
from pipeline.runtime import Session

HERE = Path(__file__).parent
OUT = HERE / "out"
ORIGINAL = OUT / "original_float.onnx"
LEAST_SCORE, OVERLAP = 0.001, 0.7
STRIDES = np.repeat([8, 16, 32], [(SIZE // stride) ** 2 for stride in (8, 16, 32)])
CENTRE, WIDTH, SCORES = (f"/model.22/{name}_output_0" for name in ("Div_1", "Sub_1", "Sigmoid"))

Outputs = Mapping[str, NDArray[np.float32]]


def rows(outputs: Outputs) -> tuple[NDArray[np.float32], ...]:
    """Centres (A, 2) and sizes (A, 2) in pixels, and scores (classes, A), of one scene."""
    if "output0" not in outputs:
        centre, size = (outputs[name][0] * STRIDES for name in (CENTRE, WIDTH))
        return centre.T, size.T, outputs[SCORES][0]
    [output] = outputs["output0"]
    return output[:2].T * SIZE, output[2:4].T * SIZE, output[4 : 4 + len(CLASSES)]


def detections(outputs: Outputs) -> Detections:
    """What a model says of one scene, in pixels, best first."""
    centre, size, per_class = rows(outputs)
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    scores, labels = per_class.max(axis=0), per_class.argmax(axis=0)
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= LEAST_SCORE]
    kept = order[suppressed(boxes[order], labels[order])]
    return Detections(boxes[kept], scores[kept], labels[kept])


def suppressed(boxes: NDArray[np.float32], labels: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which boxes (N, 4), best first, stay: greedy non-maximum suppression within a class."""
    near = box_iou(boxes, boxes, np.zeros(len(boxes), bool)) > OVERLAP
    near &= labels[:, None] == labels
    stays = np.ones(len(boxes), bool)
    for index in range(len(boxes)):
        if stays[index]:
            stays[index + 1 :] &= ~near[index, index + 1 :]
    return stays


def truths(painted: Scene) -> Truths:
    return Truths(painted.boxes, painted.labels, np.zeros(len(painted.labels), bool))


def fed(painted: Scene) -> NDArray[np.float32]:
    """What every artifact takes: pixel - 128, NCHW."""
    return painted.image.transpose(2, 0, 1)[None].astype(np.float32) - 128


def precision(artifact: Path, seeds: range) -> AveragePrecision:
    session = Session(artifact)
    [image] = session.input_names
    said, true = [], []
    for painted in scenes(seeds):
        outputs = session.run(None, {image: fed(painted)})
        said.append(detections(dict(zip(session.output_names, outputs, strict=True))))
        true.append(truths(painted))
    return average_precision(said, true, len(CLASSES))


def built() -> Iterator[Path]:
    yield ORIGINAL
    yield from sorted(OUT.rglob("*.hybrid"))


def main() -> None:
    if not ORIGINAL.exists():
        sys.exit("nothing to evaluate yet: type `doit` first")
    artifacts = [Path(argument).resolve() for argument in sys.argv[1:]] or list(built())
    names = [str(path.relative_to(OUT) if path.is_relative_to(OUT) else path) for path in artifacts]
    width = max(map(len, names))
    original = precision(ORIGINAL, TEST)
    print(f"{'artifact':{width}}   mAP50   mAP50:95   points lost")
    for name, artifact in zip(names, artifacts, strict=True):
        found = original if artifact == ORIGINAL else precision(artifact, TEST)
        lost = [original.map50 - found.map50, original.map50_95 - found.map50_95]
        figures = f"{100 * found.map50:5.1f}   {100 * found.map50_95:8.1f}"
        print(f"{name:{width}}   {figures}   {100 * lost[0]:.1f} / {100 * lost[1]:.1f}")


if __name__ == "__main__":
    main()
