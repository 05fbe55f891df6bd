"""mAP of a small quantized DETR on scenes of digits: 8 bits alone, and with a tenth of int16.

    python benchmarks/detr/measure.py [--targets ara240 rdk-x5] [--ways default best mixed]
                                      [--scenes 600] [--calibration 64] [--model FILE]

Scenes of the calibration digits calibrate; scenes of the test digits measure. The compiled file
runs in exact integers, the float model in onnxruntime. Columns: mAP at IoU .50 and .50:.95 in
percent, the points lost of each with their standard error (the same scenes for both models, drawn
again 200 times), the share of float detections above .5 that keep such a score, the share of
multiply-accumulates that read int16, and the seconds of the build.

    default    method: default
    best       recipe: best, most_int16: 0
    mixed      recipe: best, most_int16: 0.1
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digit_scenes import CALIBRATION, CLASSES, SIDE, TEST, WHITE, Scene, scenes
from numpy.typing import NDArray

import npumake
from npumake.api.quantize import QuantizedModel
from npumake.engine.ort import OrtSession
from npumake.evaluate.average_precision import (
    ByClass,
    ImageDetections,
    Truths,
    at_score,
    matches_of_boxes,
    precision_of,
)
from npumake.graph import Graph
from npumake.quant.precision.int16_share import int16_share

MODEL = Path(__file__).parent / "model.onnx"
RESAMPLES, SCORE = 200, 0.5
INPUT = {"image": {"offset": 128, "mean": 0, "scale": 1 / WHITE}}
WAYS: dict[str, dict[str, Any]] = {
    "default": {"calibration": {"method": "default"}},
    "best": {"calibration": {"recipe": "best"}, "quantization": {"most_int16": 0.0}},
    "mixed": {"calibration": {"recipe": "best"}, "quantization": {"most_int16": 0.1}},
}


class Scores(NamedTuple):
    """mAP in percent."""

    map50: float
    map50_95: float


def corners(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes (N, 4) of center x, y, width, height as left, top, right, bottom; pixels."""
    center, half = boxes[:, :2], boxes[:, 2:] / 2
    return np.concatenate([center - half, center + half], axis=1) * np.float32(SIDE)


def detections(outputs: Sequence[NDArray[np.float32]]) -> ImageDetections:
    """Of logits (1, Q, CLASSES + 1) and boxes (1, Q, 4): each query's likeliest class but none."""
    logits, boxes = (np.asarray(output[0], np.float32) for output in outputs)
    likelihood = np.exp(logits - logits.max(-1, keepdims=True))
    likelihood = (likelihood / likelihood.sum(-1, keepdims=True))[:, :CLASSES]
    return ImageDetections(corners(boxes), likelihood.max(-1), likelihood.argmax(-1))


def truths(scene: Scene) -> Truths:
    real = scene.labels < CLASSES
    return Truths(corners(scene.boxes[real]), scene.labels[real], np.zeros(real.sum(), bool))


def matches(outputs: Sequence[NDArray[np.float32]], scene: Scene) -> ByClass:
    return matches_of_boxes(detections(outputs), truths(scene))


def scores(images: Sequence[ByClass]) -> Scores:
    precision = precision_of(images, CLASSES)
    return Scores(100 * precision.map50, 100 * precision.map50_95)


def errors(before: Sequence[ByClass], after: Sequence[ByClass]) -> NDArray[np.floating]:
    """Standard errors (2,) of what `after` loses, by a paired bootstrap over the scenes."""
    random = np.random.RandomState(0)
    losses = []
    for _ in range(RESAMPLES):
        rows = random.randint(0, len(before), len(before))
        pair = (scores([images[row] for row in rows]) for images in (before, after))
        losses.append(np.subtract(*pair))
    return np.std(losses, axis=0)


def line(before: Sequence[ByClass], after: Sequence[ByClass]) -> str:
    found, lost = scores(after), np.subtract(scores(before), scores(after))
    pairs = zip(lost, errors(before, after), strict=True)
    recall, float_recall = (at_score(images, SCORE).recall for images in (after, before))
    columns = [f"{found.map50:6.2f} {found.map50_95:6.2f}"]
    columns += [f"{loss:+6.2f} ± {error:.2f}" for loss, error in pairs]
    return "  ".join((*columns, f"{100 * recall / max(float_recall, 1e-9):6.1f}"))


def quantized(
    model: Path, calibration: Sequence[Scene], target: str, way: str
) -> tuple[QuantizedModel, float]:
    """The model, and the seconds that it took."""
    started = time.perf_counter()
    pixels = np.stack([scene.pixels[None] for scene in calibration])
    sections = {"inputs": INPUT, **WAYS[way]}
    return npumake.quantize(model, pixels, target=target, sections=sections), (
        time.perf_counter() - started
    )


def float_matches(model: Path, test: Sequence[Scene]) -> list[ByClass]:
    session = OrtSession(model.read_bytes())
    feeds = ({"image": scene.pixels[None] / np.float32(WHITE)} for scene in test)
    return [
        matches(session.run(None, feed), scene) for feed, scene in zip(feeds, test, strict=True)
    ]


def compiled_matches(model: QuantizedModel, test: Sequence[Scene]) -> list[ByClass]:
    session = model.session()
    names = ("logits", "boxes")
    return [matches(session.run(names, {"image": scene.pixels[None]}), scene) for scene in test]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--scenes", type=int, default=600)
    parser.add_argument("--calibration", type=int, default=64)
    parser.add_argument("--model", type=Path, default=MODEL)
    options = parser.parse_args()
    test, calibration = scenes(TEST, options.scenes), scenes(CALIBRATION, options.calibration)
    before = float_matches(options.model, test)
    print(f"{'float':<16} {scores(before).map50:6.2f} {scores(before).map50_95:6.2f}", flush=True)
    for target in options.targets:
        for way in options.ways:
            model, seconds = quantized(options.model, calibration, target, way)
            row = line(before, compiled_matches(model, test))
            share = int16_share(Graph.from_bytes(model.stages["quantized"]))
            title = f"{target} {way}"
            print(f"{title:<16} {row}  {100 * share:5.1f} %  {seconds:5.0f} s", flush=True)


if __name__ == "__main__":
    main()
