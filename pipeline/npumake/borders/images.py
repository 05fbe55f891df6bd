"""Facts about inputs in the graph's metadata: 8-bit images, trained shapes, batch per run.

An image needs no calibration: pixel - 128 is already an int8 value, so its scale is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from npumake.graph import Graph

NOTE = "npumake.images"
TRAINED = "npumake.trained"
BATCH = "npumake.batch"


def mark_images(graph: Graph, names: Iterable[str]) -> None:
    graph.set_metadata({NOTE: json.dumps(sorted(names))})


def images(graph: Graph) -> frozenset[str]:
    return frozenset(json.loads(graph.metadata.get(NOTE, "[]")))


def mark_trained(graph: Graph, shapes: Mapping[str, tuple[int, ...] | None]) -> None:
    """Records the model's inputs in order, with the trained shape of each that is fed in another
    form. Without such inputs the graph needs no record."""
    if any(shape is not None for shape in shapes.values()):
        graph.set_metadata({TRAINED: json.dumps(shapes)})


def trained_shapes(graph: Graph) -> Mapping[str, tuple[int, ...]]:
    """The trained shapes of inputs that are fed in another form."""
    return {name: tuple(shape) for name, shape in _noted(graph).items() if shape is not None}


def model_order(graph: Graph) -> tuple[str, ...]:
    """The names of the trained model's inputs, in order."""
    return tuple(_noted(graph)) or tuple(str(value.name) for value in graph.inputs)


def _noted(graph: Graph) -> Mapping[str, list[int] | None]:
    shapes: Mapping[str, list[int] | None] = json.loads(graph.metadata.get(TRAINED, "{}"))
    return shapes


def mark_batch(graph: Graph, batch: int) -> None:
    if batch > 1:
        graph.set_metadata({BATCH: json.dumps(batch)})


def batch(graph: Graph) -> int:
    return int(json.loads(graph.metadata.get(BATCH, "1")))
