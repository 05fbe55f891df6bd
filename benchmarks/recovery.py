"""The gain of each accuracy correction, on trained models and real images.

    python benchmarks/recovery.py [--models mobilenet squeezenet] [--target rdk-x5]

100 images calibrate, the others measure: the cosine of the outputs with the float model's, the
share of images with its top-1 class and, for ImageNet's classes, top-1 itself. Models and images
are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.frontends import read_model
from npumake.graph import Graph, shape, upgraded
from npumake.kernels.measure import Agreement, agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.correction.adaptive_rounding import round_adaptively
from npumake.quant.correction.bias_correction import correct_biases
from npumake.quant.correction.cross_layer_equalization import equalize
from npumake.quant.correction.smoothquant import smoothquant
from npumake.quant.correction.weight_clipping import clip_weights
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target
from npumake.targets.target import Target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
CALIBRATE = 100
SWITCHES = ("equalize", "migrate", "clip", "round", "bias")


@dataclass(frozen=True)
class Model:
    """A trained classifier: how an RGB image of (side, side, 3) in 0..255 becomes its input."""

    path: str
    short: float  # side of the resized image before the center is cropped, in sides
    fed: Callable[[np.ndarray], np.ndarray]
    background: int | None = None  # how many classes come before ImageNet's; None: others

    def read(self) -> Graph:
        file = SHARED / "models" / self.path
        return optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())


MODELS = {
    "mobilenet": Model(
        "classification/mobilenet_v1_0.25_224_float.tflite", 8 / 7, lambda x: x / 127.5 - 1, 1
    ),
    "squeezenet": Model(
        "classification/squeezenet1.1_winml_fp32_DERIVED.onnx",
        8 / 7,
        lambda x: (x[..., ::-1] - [103.939, 116.779, 123.68]).transpose(2, 0, 1),
        0,
    ),
    "resnet8": Model("classification/cifar10_resnet8_float.tflite", 1, lambda x: x),
    "vww": Model("classification/vww_96_float.tflite", 1, lambda x: x / 255),
}


def images(model: Model, graph: Graph) -> tuple[list[Feeds], list[int]]:
    """Every image as feeds and its class, those to calibrate with first."""
    folder = SHARED / "images" / "imagenet500"
    with (folder / "labels.csv").open() as file:
        rows = [(row["file"], int(row["class_index"])) for row in csv.DictReader(file)]
    rows = [rows[index] for index in np.random.default_rng(0).permutation(len(rows))]
    (value,) = graph.inputs
    side = max(shape(value)[2:3])

    def feed(name: str) -> Feeds:
        x = model.fed(_cropped(folder / name, side, round(side * model.short)))
        return {str(value.name): x[None].astype(np.float32)}

    return [feed(name) for name, _ in rows], [label for _, label in rows]


def _cropped(path: Path, side: int, short: int) -> np.ndarray:
    image = Image.open(path).convert("RGB")
    factor = short / min(image.size)
    image = image.resize([round(n * factor) for n in image.size], Image.Resampling.BILINEAR)
    left, top = ((n - side) // 2 for n in image.size)
    return np.asarray(image.crop((left, top, left + side, top + side)), np.float64)


def quantized(
    graph: Graph,
    feeds: Sequence[Feeds],
    target: Target,
    method: str,
    switches: Sequence[str],
    quantization: Quantization = DEFAULT,
) -> Graph:
    """The graph on the target's grids, with these switches on."""
    if "equalize" in switches:
        graph = equalize(graph)
    if "migrate" in switches:
        graph = smoothquant(graph, feeds, target.weights)
    calibration = Calibration(method)  # type: ignore[arg-type]
    recipe = ranges_by_method(
        graph, observe(graph, feeds), calibration, target.activations.symmetric
    )
    made = calibrated_with(graph, recipe, target, quantization)
    if "clip" in switches:
        made = clip_weights(made, target.weights)
    if "round" in switches:
        made = round_adaptively(graph, made, feeds)
    if "bias" in switches:
        made = correct_biases(graph, made, feeds)
    return with_integer_weights(made)


def answers(graph: Graph, feeds: Sequence[Feeds]) -> np.ndarray:
    """The first output for each of the feeds, flat: (feeds, classes)."""
    session = float_session(graph)
    return np.stack([y[0].ravel() for y in side_by_side(lambda f: session.run(None, f), feeds)])


def report(
    name: str, seconds: float, meant: np.ndarray, made: np.ndarray, wanted: Sequence[int]
) -> None:
    close: Agreement = agreement(meant, made)
    same = 100 * np.mean(meant.argmax(1) == made.argmax(1))
    top1 = f"{100 * np.mean(made.argmax(1) == np.array(wanted)):7.2f}" if wanted else "      -"
    print(f"  {name:<22}{seconds:7.1f} s {close.cosine:10.5f} {same:8.2f} {top1}", flush=True)


def measure(name: str, target: Target, rows: Sequence[tuple[str, ...]]) -> None:
    model = MODELS[name]
    graph = model.read()
    feeds, labels = images(model, graph)
    held_out, classes = feeds[CALIBRATE:], [c + (model.background or 0) for c in labels[CALIBRATE:]]
    wanted = classes if model.background is not None else []
    meant = answers(graph, held_out)
    print(f"{name} on {target.name}{'cosine':>23} same as float  top-1")
    report("float", 0.0, meant, meant, wanted)
    for method, *switches in rows:
        started = time.perf_counter()
        made = quantized(graph, feeds[:CALIBRATE], target, method, switches)
        seconds = time.perf_counter() - started
        report(" ".join([method, *switches]), seconds, meant, answers(made, held_out), wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--target", default="rdk-x5")
    arguments = parser.parse_args()
    alone = [(method, *some) for method in ("max", "kl") for some in ((), *zip(SWITCHES))]
    rows = [*alone, ("max", *SWITCHES), ("kl", *SWITCHES)]
    for name in arguments.models:
        measure(name, read_target(arguments.target), rows)


if __name__ == "__main__":
    main()
