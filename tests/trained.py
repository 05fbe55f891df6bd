"""Small trained networks on digits, made hard for int8 without changing what they compute."""

from __future__ import annotations

from functools import cache

import numpy as np

from npumake.engine.float_session import float_session
from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.kernels.measure import cosine
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.correction.rescale_groups import find_rescale_groups, rescale
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.target import Activations, Target, WeightGrid
from workspaces import REPO

DIGITS = REPO / "projects" / "digits"
PER_TENSOR, PER_CHANNEL = (
    Target(
        "chip", "vendor", "NPU", Activations("int8", True), WeightGrid("int8", each), "half_even"
    )
    for each in (False, True)
)


@cache
def network(name: str) -> Graph:
    """`repvgg`, `mobilenetv3` or `transformer`, optimized; tests/networks/train.py made them."""
    data = (REPO / "tests" / "networks" / f"{name}.onnx").read_bytes()
    return optimized(upgraded(read_model(data, f"{name}.onnx")).with_shapes())


@cache
def samples() -> list[dict[str, np.ndarray]]:
    """The 64 images to calibrate with."""
    files = sorted((DIGITS / "samples").glob("*.npy"))
    return [{"image": (np.load(file) / 16).astype(np.float32)} for file in files]


@cache
def held_out() -> list[dict[str, np.ndarray]]:
    images = np.load(DIGITS / "test_images.npy")[:, None] / np.float32(16)
    return [{"image": image.astype(np.float32)} for image in images]


def stressed(graph: Graph, spread: float) -> Graph:
    """The same function, channels between layers divided by random factors exp(spread * normal)."""
    graph, rng = graph.copy(), np.random.default_rng(0)
    for bundle in find_rescale_groups(graph):
        rescale(graph, bundle, np.exp(spread * rng.normal(size=bundle.channels)))
    graph.drop_unused()
    return graph.with_shapes()


def calibrated(
    graph: Graph,
    chip: Target,
    method: str = "max",
    feeds: list[dict[str, np.ndarray]] | None = None,
) -> Graph:
    """By the images to calibrate with, or by `feeds`."""
    measured, symmetric = observe(graph, feeds or samples()), chip.activations.symmetric
    recipe = ranges_by_method(graph, measured, Calibration(method), symmetric)
    return calibrated_with(graph, recipe, chip, DEFAULT)


def logits(graph: Graph) -> np.ndarray:
    """Those of the 600 held-out images, (600, 10)."""
    session = float_session(graph)
    return np.concatenate([session.run(None, feed)[0] for feed in held_out()])


def top1(graph: Graph) -> float:
    """Percent of the held-out images."""
    labels = np.load(DIGITS / "test_labels.npy")
    return 100 * float(np.mean(logits(graph).argmax(1) == labels))


def closeness(graph: Graph, made: Graph) -> float:
    """The cosine of the logits of two graphs over the held-out images."""
    return cosine(logits(graph), logits(made))
