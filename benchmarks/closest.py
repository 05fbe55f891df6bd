"""Outputs of quantized models against float ones: npumake and others, small models.

    python benchmarks/closest.py [--models ocr kws] [--targets ara240 rdk-x5] [--best]
                                 [--most-int16 0 0.1]
                                 [--nncf PYTHON] [--modelopt PYTHON] [--quark PYTHON]

CALIBRATE samples calibrate, MEASURE others measure the cosine of the worst output. `default` (and
`best`) are compared with other quantizers (peers.py) on the same graph. A second figure is the
logarithm of the loss, 1 - cosine, over that of `default`, a third that over `best` within the first
budget, each with its standard error (paired.py). `<` marks a peer that is closer than `default`.

Inputs are pictures of imagenet500, digits, or words, half of them upside down. A model of sounds
gets strips of pictures in the range of its training, so its figures say nothing about speech.
Models and pictures are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import Ways
from paired import Totals, resampled, standard_error
from peers import add_peers, is_peer, peers_of
from PIL import Image, ImageDraw, ImageFont
from recovery import SHARED

from npumake.data.samples import Samples
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.parallel import side_by_side
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.kernels.measure import Alignment, agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from npumake.targets.target import Target

CALIBRATE, MEASURE = 32, 300
BEST = Calibration(recipe="best")
Parts = list[np.ndarray]  # by sample: ab, aa and bb of each output, (outputs, 3)
Shown = Callable[[np.ndarray], np.ndarray]  # RGB (height, width, 3), 0..255 → the input


def _planes(x: np.ndarray) -> np.ndarray:
    return x.transpose(2, 0, 1)


@dataclass(frozen=True)
class Model:
    path: str
    size: tuple[int, int]  # (height, width) of what is shown
    shown: Shown
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # where it leaves them open

    def read(self) -> Graph:
        file = SHARED / "models" / self.path
        graph = read_model(file.read_bytes(), file.name)
        for value in graph.inputs:
            if dims := self.shapes.get(str(value.name)):
                graph.set_input_shape(value, dims)
        return optimized(upgraded(graph).with_shapes())


OCR = Model(
    "ocr/ppocr_mobile_v2_cls.onnx",
    (48, 192),
    lambda x: _planes(x / 127.5 - 1),
    {"x": (1, 3, 48, 192)},
)
MODELS = {
    "mnist": Model("classification/mnist_cntk.onnx", (28, 28), lambda x: _planes(x)[:1]),
    "resnet8": Model("classification/cifar10_resnet8_float.tflite", (32, 32), lambda x: x),
    "vww": Model("classification/vww_96_float.tflite", (96, 96), lambda x: x / 255),
    "kws": Model("audio/kws_tiny_float.tflite", (49, 10), lambda x: x[..., :1] * 0.58 - 123),
    "anomaly": Model("anomaly/ad01_fp32.tflite", (5, 128), lambda x: x[..., 0].ravel() * 0.25 - 60),
    "ocr": OCR,
    "ocr-photos": OCR,
    "face96": Model(
        "detection/sscma_yolov5tiny_face_96.onnx", (96, 96), lambda x: _planes(x / 255)
    ),
    "ultraface": Model(
        "detection/ultraface_slim320.onnx", (240, 320), lambda x: _planes((x - 127) / 128)
    ),
    "yunet": Model("detection/yunet_n_320_320.onnx", (320, 320), lambda x: _planes(x[..., ::-1])),
    "yolox": Model("detection/yolox_person_192.onnx", (192, 192), lambda x: _planes(x[..., ::-1])),
    "fastestdet": Model(
        "detection/fastestdet_352.onnx", (352, 352), lambda x: _planes(x[..., ::-1] / 255)
    ),
    "deeplab": Model("segmentation/deeplabv3_mnv2_257.onnx", (257, 257), lambda x: x / 127.5 - 1),
}


def feeds(name: str, graph: Graph) -> list[Feeds]:
    """Those to calibrate with first."""
    model = MODELS[name]
    (value,) = graph.inputs
    if name == "mnist":
        pictures = _digits()
    else:
        pictures = _words(model.size) if name == "ocr" else _pictures(model.size)
    return [{str(value.name): model.shown(x)[None].astype(np.float32)} for x in pictures]


def _pictures(size: tuple[int, int]) -> list[np.ndarray]:
    files = sorted((SHARED / "images" / "imagenet500").rglob("*.jpg"))
    order = np.random.default_rng(0).permutation(len(files))[: CALIBRATE + MEASURE]

    def read(file: Path) -> np.ndarray:
        image = Image.open(file).convert("RGB")
        return np.asarray(image.resize(size[::-1], Image.Resampling.BILINEAR), np.float64)

    return [read(files[number]) for number in order]


def _digits() -> list[np.ndarray]:
    packed = (SHARED / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes()
    digits = np.frombuffer(gzip.decompress(packed), np.uint8, offset=16).reshape(-1, 28, 28, 1)
    return [x.repeat(3, -1).astype(np.float64) for x in digits[: CALIBRATE + MEASURE]]


def _words(size: tuple[int, int]) -> list[np.ndarray]:
    """Names of ImageNet's classes, dark on light or light on dark, every second upside down."""
    with (SHARED / "images" / "imagenet500" / "labels.csv").open() as file:
        names = [row["name"] for row in csv.DictReader(file)]
    rng = np.random.default_rng(0)
    made = []
    for number, name in enumerate(names[: CALIBRATE + MEASURE]):
        shades = [tuple(map(int, rng.integers(low, low + 100, 3))) for low in (0, 150)]
        ink, paper = shades if number % 4 < 2 else shades[::-1]
        image = Image.new("RGB", size[::-1], paper)
        font = ImageFont.load_default(int(rng.integers(18, 34)))
        ImageDraw.Draw(image).text((8, int(rng.integers(0, 10))), name[:16], ink, font)
        image = image.rotate(180 * (number % 2))
        made.append(np.asarray(image, np.float64) + rng.normal(0, 4, (*size, 3)))
    return made


def ours(
    graph: Graph,
    fed: Sequence[Feeds],
    target: Target,
    calibration: Calibration,
    asked: Quantization = DEFAULT,
) -> bytes:
    samples = Samples(tuple(map(str, range(len(fed)))), fed.__getitem__)
    found = recipe(graph, observe(graph, samples), samples, calibration, target, quantization=asked)
    tensors = calibrated(graph, found, samples, target, quantization=asked)
    return quantized(tensors, target).to_bytes()


def answers(model: bytes, fed: Sequence[Feeds]) -> list[np.ndarray]:
    """Each output, over all of the samples."""
    session = OrtSession(model)
    made = side_by_side(lambda feed: session.run(None, feed), fed)
    return [np.stack(column) for column in zip(*made, strict=True)]


def ways(graph: Graph, fed: Sequence[Feeds], target: Target, given: argparse.Namespace) -> Ways:
    symmetric = not target.activations.may_be_asymmetric
    yield "default", partial(ours, graph, fed, target, Calibration("default"))
    for share in given.most_int16 if given.best else ():
        asked = Quantization(most_int16=share)
        yield f"best {share:g}", partial(ours, graph, fed, target, BEST, asked)
    yield from peers_of(given, graph.to_bytes(), fed, symmetric)


def measure(name: str, targets: Sequence[Target], given: argparse.Namespace) -> None:
    graph = MODELS[name].read()
    fed = feeds(name, graph)
    shown, held_out = fed[:CALIBRATE], fed[CALIBRATE:]
    meant = answers(graph.to_bytes(), held_out)
    for target in targets:
        totals: dict[str, Totals] = {}
        for way, make in ways(graph, shown, target, given):
            try:
                found = {way: compared(meant, answers(make(), held_out))}
            except (RuntimeError, ValueError, GraphError) as error:  # a peer's failure is a row too
                print(f"{name:<11} {target.name:<8} {way:<26} {str(error)[:60]}", flush=True)
                continue
            totals |= resampled(found, log_loss)
            print(f"{name:<11} {target.name:<8} {way:<26} {line(totals, way)}", flush=True)


def line(totals: Mapping[str, Totals], way: str) -> str:
    """The cosine, and the loss over that of each way of ours."""
    first, *rest = (key for key in totals if not is_peer(key))
    over = [totals[way] - totals[key] for key in (first, *rest[:1])]
    ratios = [f"{ratio[0]:+.2f} ± {standard_error(ratio):.2f}" for ratio in over]
    mark = " <" if over[0][0] < 0 and is_peer(way) else ""
    return f"{1 - np.exp(totals[way][0]):.6f}  {'  '.join(ratios)}{mark}"


def compared(meant: Sequence[np.ndarray], made: Sequence[np.ndarray]) -> Parts:
    columns = [list(map(agreement, *column)) for column in zip(meant, made, strict=True)]
    sums = [[(part.ab, part.aa, part.bb) for part in column] for column in columns]
    return list(np.array(sums).swapaxes(0, 1))


def log_loss(parts: Sequence[np.ndarray]) -> float:
    """The logarithm of 1 - cosine of the output that comes off worst."""
    rows = np.sum(parts, axis=0)
    return float(np.log(1 - min(Alignment(*row).cosine for row in rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--most-int16", nargs="*", type=float, default=[0.0, 0.1])
    add_peers(parser)
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # what onnxruntime's quantizer advises
    for name in given.models:
        targets = [read_target(target) for target in given.targets]
        measure(name, targets, given)


if __name__ == "__main__":
    main()
