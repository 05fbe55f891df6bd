"""The normalization that a model file states itself: DECLARED, the most reliable first.

arithmetic   the first nodes compute a * x + b of the picture: a network's own normalization
tflite       NormalizationOptions of TFLite's metadata: (x - mean) / std
winml        the keys Image.* of an ONNX file for Windows ML
grid         the quantization of the input: real = scale * (code - zero point)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, only_consumer
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.recognition.facts import ModelFacts
from npumake.recognition.feeds import (
    RAW,
    SIGNED,
    UNIT,
    PixelNormalization,
    feed,
    of_reach,
)
from npumake.recognition.recognized import DeclaredFeed

PASSING = ("Cast", "Identity", "Transpose", *QDQ_OPERATORS, "Reshape", "Pad")
WINML_RANGES = {
    "NominalRange_0_255": RAW,
    "Normalized_0_1": UNIT,
    "Normalized_1_1": SIGNED,
}
PIXEL_SPREAD = 60.0  # standard deviation of 8-bit pixels of photographs, about
MAX_SPREAD = 8.0  # of values that a network has normalized


class _Affine(NamedTuple):
    """a * x + b of the input, and the nodes that compute it."""

    a: np.ndarray
    b: np.ndarray
    nodes: tuple[str, ...]


def declared(facts: ModelFacts) -> DeclaredFeed | None:
    """The first of DECLARED that the file has; None if it states nothing."""
    for read in DECLARED:
        if (declared_feed := read(facts)) is not None:
            return declared_feed
    return None


def _arithmetic(facts: ModelFacts) -> DeclaredFeed | None:
    """The network normalizes: it takes 0..255 if that leaves normalized values, else 0..1."""
    affine = _affine(facts.graph, facts.image.name)
    if not affine.nodes:
        return None
    spread = float(np.abs(affine.a).mean())
    if spread * PIXEL_SPREAD <= MAX_SPREAD or abs(float(np.mean(affine.b))) > MAX_SPREAD:
        normalization = RAW
    else:
        normalization = UNIT
    evidence = f"the model's first nodes normalize ({', '.join(affine.nodes)})"
    return DeclaredFeed(feed(normalization, "rgb", facts.image.channels), evidence)


def _affine(graph: Graph, name: str) -> _Affine:
    a, b, nodes = np.ones(1), np.zeros(1), []
    for node in _chain(graph, name):
        step = _step(node)
        if step is None:
            continue
        scale, shift = step
        a, b = a.mean() * scale, b.mean() * scale + shift
        nodes.append(node.op_type)
    return _Affine(a, b, tuple(nodes))


def _chain(graph: Graph, name: str) -> Iterator[Node]:
    """The nodes behind the input that pass or scale it, up to the first that does another thing."""
    value: Value | None = next(v for v in graph.inputs if v.name == name)
    while value is not None:
        node = only_consumer(value)
        if node is None or not (node.op_type in PASSING or _step(node)):
            return
        yield node
        value = node.outputs[0]


def _step(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """(scale, shift) of an affine node; None for another."""
    if node.op_type == "BatchNormalization":
        constants = [array(value) for value in node.inputs[1:5]]
        if any(constant is None for constant in constants):
            return None
        gamma, beta, mean, variance = (np.asarray(c, np.float64) for c in constants)
        scale = gamma / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return scale, beta - mean * scale
    if node.op_type not in ("Add", "Sub", "Mul", "Div"):
        return None
    x, y = (array(value) for value in node.inputs)
    constant = y if x is None else x
    if constant is None or constant.size > 3:
        return None
    c = np.asarray(constant, np.float64).ravel()
    if x is None:
        pairs = {"Add": (1, c), "Sub": (1, -c), "Mul": (c, 0), "Div": (1 / np.where(c, c, 1), 0)}
    else:  # c - x, and 1 / x, which is not affine
        pairs = {"Add": (1, c), "Sub": (-1, c), "Mul": (c, 0)}
    pair = pairs.get(node.op_type)
    return None if pair is None else (np.asarray(pair[0], float), np.asarray(pair[1], float))


def _tflite(facts: ModelFacts) -> DeclaredFeed | None:
    notes, image = facts.tflite, facts.image
    if image.grid is not None or not notes.mean or not notes.std or 0 in notes.std:
        return None
    scale = tuple(round(1 / std, 8) for std in notes.std)
    own = PixelNormalization("(x - mean) / std", tuple(notes.mean), scale)
    normalization = of_reach(*own.reach) if not own.by_color else None
    evidence = f"TFLite metadata: mean {list(notes.mean)}, std {list(notes.std)}"
    return DeclaredFeed(
        feed(normalization or own, "rgb", image.channels), evidence, sets_color=True
    )


def _winml(facts: ModelFacts) -> DeclaredFeed | None:
    normalization = WINML_RANGES.get(facts.notes.get("Image.NominalPixelRange", ""))
    if normalization is None:
        return None
    color = facts.notes.get("Image.BitmapPixelFormat", "")
    order = "bgr" if color.startswith("Bgr") else "rgb"
    evidence = f"metadata: Image.NominalPixelRange, Image.BitmapPixelFormat {color}"
    chosen = feed(normalization, "bgr" if order == "bgr" else "rgb", facts.image.channels)
    return DeclaredFeed(chosen, evidence, sets_color=bool(color))


def _grid(facts: ModelFacts) -> DeclaredFeed | None:
    """A known normalization whose codes are the pixels, with the numbers of the grid."""
    grid = facts.image.grid
    normalization = of_reach(*grid.reach) if grid else None
    if grid is None or normalization is None:
        return None
    if normalization.by_color:
        chosen = feed(normalization, "rgb", facts.image.channels)
    else:
        own = PixelNormalization(normalization.name, (float(grid.mean),), (round(grid.scale, 9),))
        chosen = feed(own, "rgb", facts.image.channels)
    text = f"scale {grid.scale:.7g}, zero point {grid.zero_point}"
    return DeclaredFeed(chosen, f"the input is quantized: {grid.dtype}, {text}")


DECLARED: tuple[Callable[[ModelFacts], DeclaredFeed | None], ...] = (
    _arithmetic,
    _tflite,
    _winml,
    _grid,
)
