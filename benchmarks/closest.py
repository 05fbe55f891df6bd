"""Outputs of quantized models against float ones: npumake and others, small models.

    python benchmarks/closest.py [--models ocr kws] [--targets ara240 rdk-x5] [--best]
                                 [--most-int16 0 0.1]
                                 [--nncf PYTHON] [--modelopt PYTHON] [--quark PYTHON]

CALIBRATE samples calibrate, MEASURE others measure the cosine of the worst output. `default` (and
`best`) are compared with onnxruntime's methods and others' (peers.py) on the same graph. A second
figure is the logarithm of the loss, 1 - cosine, over that of `default`, with its standard error by
the jackknife over GROUPS groups of samples. `<` marks a tool that is closer than `default`.

Inputs are pictures of imagenet500, digits, or words, half of them upside down. A model of sounds
gets strips of pictures in the range of its training, so its figures say nothing about speech.
Models and pictures are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import Reader, Ways
from onnxruntime.quantization import CalibrationMethod, quantize_static
from peers import PEERS, add_peers, peers_of
from PIL import Image, ImageDraw, ImageFont
from recovery import SHARED

from npumake.data.samples import Samples
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.parallel import side_by_side
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.kernels.measure import Agreement, agreement
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
GROUPS = 16
METHODS = ("MinMax", "Percentile")  # its Entropy, by default, writes what MinMax does
Parts = list[list[Agreement]]  # by output and sample
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


def by_onnxruntime(graph: Graph, fed: Sequence[Feeds], method: str, symmetric: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "source.onnx"), Path(folder, "made.onnx")
        source.write_bytes(graph.to_bytes())
        quantize_static(
            source,
            made,
            Reader(fed),
            per_channel=True,
            calibrate_method=CalibrationMethod[method],
            extra_options={"ActivationSymmetric": symmetric},
        )
        return made.read_bytes()


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
    for method in METHODS:
        yield f"ort {method}", partial(by_onnxruntime, graph, fed, method, symmetric)
    yield from peers_of(given, graph.to_bytes(), fed, symmetric)


def measure(name: str, targets: Sequence[Target], given: argparse.Namespace) -> None:
    graph = MODELS[name].read()
    fed = feeds(name, graph)
    shown, held_out = fed[:CALIBRATE], fed[CALIBRATE:]
    meant = answers(graph.to_bytes(), held_out)
    for target in targets:
        first: Parts = []
        for way, make in ways(graph, shown, target, given):
            try:
                found = compared(meant, answers(make(), held_out))
            except (RuntimeError, ValueError, GraphError) as error:  # a peer's failure is a row too
                print(f"{name:<11} {target.name:<8} {way:<26} {str(error)[:60]}", flush=True)
                continue
            first = first or found
            share, spread = ratio(found, first)
            mark = " <" if share < 0 and way.startswith(("ort", *PEERS)) else ""
            told = f"{1 - lost(found, ()):.6f} {share:+.2f} ± {spread:.2f}{mark}"
            print(f"{name:<11} {target.name:<8} {way:<26} {told}", flush=True)


def compared(meant: Sequence[np.ndarray], made: Sequence[np.ndarray]) -> Parts:
    return [list(map(agreement, *column)) for column in zip(meant, made, strict=True)]


def lost(parts: Parts, without: Sequence[int]) -> float:
    """1 - cosine of the output that comes off worst, of all samples but some."""
    kept = [[part for n, part in enumerate(column) if n not in without] for column in parts]
    return 1 - min(sum(column, Agreement()).cosine for column in kept)


def ratio(parts: Parts, first: Parts) -> tuple[float, float]:
    """The logarithm of what is lost over what the first loses, and its standard error."""
    groups = [(), *(range(at, len(parts[0]), GROUPS) for at in range(GROUPS))]
    found = [float(np.log(lost(parts, out) / lost(first, out))) for out in groups]
    return found[0], float(np.std(found[1:]) * np.sqrt(GROUPS - 1))


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
