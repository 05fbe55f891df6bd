"""Accuracy of quantized classifiers. Other quantizers are measured by beside.py.

    python benchmarks/accuracy.py [--models mobilenet vww] [--targets ara240 rdk-x5]
                                  [--ways default best] [--folds 1 2 3 4 5]
                                  [--most-int16 0 0.1]

100 images of imagenet500, in a fixed shuffle, calibrate; the other 400 measure. With `--folds` each
hundred calibrates in turn, because the loss on 400 images depends on the choice.

One row per method: seconds, cosine of the outputs with the float model's, and the share of images
with its top-1 class. For ImageNet's classes also top-1, its loss, and the standard error of that
loss, taken image by image.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from recovery import MODELS, answers, images

from npumake.data.samples import Samples
from npumake.engine.ort import Feeds, OrtSession
from npumake.graph import Graph
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.qdq.insert import DEFAULT
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from npumake.targets.target import Target

OURS = {
    "max": Calibration("max"),
    "kl": Calibration("kl"),
    "default": Calibration("default"),
    "best": Calibration(recipe="best"),
}
Ways = Iterator[tuple[str, Callable[[], bytes]]]


def ours(graph: Graph, feeds: Sequence[Feeds], target: Target, given: argparse.Namespace) -> Ways:
    samples = Samples(tuple(map(str, range(len(feeds)))), feeds.__getitem__)
    measured = observe(graph, samples)

    def quantized_with(calibration: Calibration, asked: Quantization) -> bytes:
        found = recipe(graph, measured, samples, calibration, target, quantization=asked)
        print("\n".join(f"    {line}" for line in found.lines))
        tensors = calibrated(graph, found, samples, target, quantization=asked)
        finished = quantized(tensors, target)
        print(f"    int16: {100 * int16_share(finished):.1f} % of the multiply-accumulates")
        return finished.to_bytes()

    for name in given.ways:
        if name != "best":
            yield f"{name}, {target.name}", partial(quantized_with, OURS[name], DEFAULT)
            continue
        for share in given.most_int16:
            asked = Quantization(most_int16=share)
            yield f"best {share:g}, {target.name}", partial(quantized_with, OURS[name], asked)


def run(model: bytes, feeds: Sequence[Feeds]) -> np.ndarray:
    """The first output for each of the feeds, (feeds, classes)."""
    session = OrtSession(model)
    return np.stack([session.run(None, feed)[0].ravel() for feed in feeds])


def row(
    name: str, seconds: float, meant: np.ndarray, made: np.ndarray, wanted: Sequence[int]
) -> str:
    same = 100 * np.mean(meant.argmax(1) == made.argmax(1))
    text = f"{name:<40}{seconds:7.1f} s {cosine(meant, made):9.5f} {same:7.2f}"
    if not wanted:
        return text
    before, after = (100.0 * (y.argmax(1) == np.array(wanted)) for y in (meant, made))
    lost = before - after
    error = lost.std() / math.sqrt(len(lost))
    return f"{text} {after.mean():7.2f} {lost.mean():+6.2f} ± {error:.2f}"


def measure(name: str, fold: int | None, given: argparse.Namespace) -> None:
    model = MODELS[name]
    graph = model.read()
    feeds, classes = images(model, graph)
    chosen = range(0, 200, 2) if fold is None else range(100 * (fold - 1), 100 * fold)
    fed = [feeds[index] for index in chosen]
    others = [index for index in range(len(feeds)) if index not in chosen]
    held_out = [feeds[index] for index in others]
    base = model.background
    wanted = [] if base is None else [classes[index] + base for index in others]
    meant = answers(graph, held_out)
    title = name if fold is None else f"{name}, hundred {fold}"
    print(f"{title:<40}{'':>9} {'cosine':>9} {'same %':>7} {'top-1':>7} {'lost':>6}")
    print(row("float", 0.0, meant, meant, wanted), flush=True)
    for target in map(read_target, given.targets):
        for way, make in ours(graph, fed, target, given):
            started = time.perf_counter()
            made = make()
            seconds = time.perf_counter() - started
            print(row(way, seconds, meant, run(made, held_out), wanted), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--targets", nargs="*", default=["ara240", "rdk-x5"])
    parser.add_argument("--ways", nargs="*", choices=OURS, default=list(OURS))
    parser.add_argument("--folds", nargs="*", type=int, choices=range(1, 6), default=[None])
    parser.add_argument("--most-int16", nargs="*", type=float, default=[0.0, 0.1])
    given = parser.parse_args()
    for name in given.models:
        for fold in given.folds:
            measure(name, fold, given)


if __name__ == "__main__":
    main()
