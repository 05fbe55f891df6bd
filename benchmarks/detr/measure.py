"""mAP of a small quantized DETR on scenes of digits: 8 bits alone, and with a tenth of int16.

    python benchmarks/detr/measure.py [--targets ara240 rdk-x5] [--ways default best mixed]
                                      [--scenes 600] [--calibration 64] [--draws 0 1 2]
                                      [--model FILE]

Scenes of the calibration digits calibrate, other ones for each draw; scenes of the test digits
measure. The compiled file runs in exact integers, the float model in onnxruntime. The yardstick is
onnxruntime's quantize_static behind its preprocessing: MinMax, weights per channel, asymmetric
activations. Columns: mAP at IoU .50 and .50:.95 in percent, the points lost of each with their
standard error (paired.py), the recall at a score of .5 in percent of the float model's, the share
of multiply-accumulates that read int16, and the seconds of the build.

    default    method: default
    best       recipe: best, most_int16: 0
    mixed      recipe: best, most_int16: 0.1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digit_scenes import CALIBRATION, CLASSES, SIDE, TEST, WHITE, Scene, scenes
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

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

sys.path.append(str(Path(__file__).parents[1]))

from paired import resampled, standard_error

MODEL = Path(__file__).parent / "model.onnx"
SCORE = 0.5
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
    totals = resampled({"before": before, "after": after}, scores)
    return standard_error(totals["before"] - totals["after"])


def line(before: Sequence[ByClass], after: Sequence[ByClass]) -> str:
    after_scores = scores(after)
    lost = np.subtract(scores(before), after_scores)
    pairs = zip(lost, errors(before, after), strict=True)
    recall, float_recall = (at_score(images, SCORE).recall for images in (after, before))
    columns = [f"{after_scores.map50:6.2f} {after_scores.map50_95:6.2f}"]
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


def float_feed(scene: Scene) -> dict[str, NDArray[np.floating]]:
    return {"image": scene.pixels[None] / np.float32(WHITE)}


def float_matches(model: bytes, test: Sequence[Scene]) -> list[ByClass]:
    """Of an ONNX model that takes pixel / 16."""
    session = OrtSession(model)
    return [matches(session.run(("logits", "boxes"), float_feed(scene)), scene) for scene in test]


def compiled_matches(model: QuantizedModel, test: Sequence[Scene]) -> list[ByClass]:
    session = model.session()
    names = ("logits", "boxes")
    return [matches(session.run(names, {"image": scene.pixels[None]}), scene) for scene in test]


class Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, calibration: Sequence[Scene]) -> None:
        self._feeds = map(float_feed, calibration)

    def get_next(self) -> Mapping[str, NDArray[np.floating]] | None:
        return next(self._feeds, None)


def yardstick(model: Path, calibration: Sequence[Scene]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        prepared, file = (Path(folder) / name for name in ("prepared.onnx", "quantized.onnx"))
        quant_pre_process(model, prepared)
        quantize_static(prepared, file, Reader(calibration), per_channel=True)
        return file.read_bytes()


def measure(
    test: Sequence[Scene], calibration: Sequence[Scene], options: argparse.Namespace
) -> None:
    floats = float_matches(options.model.read_bytes(), test)
    print("{:<22} {:6.2f} {:6.2f}".format("float", *scores(floats)), flush=True)
    theirs = float_matches(yardstick(options.model, calibration), test)
    print(f"{'onnxruntime MinMax':<22} {line(floats, theirs)}", flush=True)
    for target in options.targets:
        for way in options.ways:
            model, seconds = quantized(options.model, calibration, target, way)
            row = line(floats, compiled_matches(model, test))
            share = int16_share(Graph.from_bytes(model.stages["quantized"]))
            title = f"{target} {way}"
            print(f"{title:<22} {row}  {100 * share:5.1f} %  {seconds:5.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--scenes", type=int, default=600)
    parser.add_argument("--calibration", type=int, default=64)
    parser.add_argument("--draws", nargs="*", type=int, default=[0])
    parser.add_argument("--model", type=Path, default=MODEL)
    options = parser.parse_args()
    test, count = scenes(TEST, options.scenes), options.calibration
    for draw in options.draws:
        calibration = scenes(CALIBRATION, count * (draw + 1))[count * draw :]
        measure(test, calibration, options)


if __name__ == "__main__":
    main()
