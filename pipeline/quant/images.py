"""What later stages must know of the inputs, noted in the graph: which are 8-bit images, the
trained shapes of those fed in another form, and how many images a compiled file takes per run.

The grid of an image needs no calibration: a pixel fed as value - 128 is a code already, so its
scale is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pipeline.graph import Graph

NOTE = "npumake.images"
TRAINED = "npumake.trained"
BATCH = "npumake.batch"


def mark_images(graph: Graph, names: Iterable[str]) -> None:
    graph.set_metadata({NOTE: json.dumps(sorted(names))})


def images(graph: Graph) -> frozenset[str]:
    return frozenset(json.loads(graph.metadata.get(NOTE, "[]")))


def mark_trained(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Note the trained shapes of the model inputs that are fed in another form."""
    if shapes:
        graph.set_metadata({TRAINED: json.dumps(shapes, sort_keys=True)})


def trained_shapes(graph: Graph) -> Mapping[str, tuple[int, ...]]:
    found = json.loads(graph.metadata.get(TRAINED, "{}"))
    return {name: tuple(shape) for name, shape in found.items()}


def mark_batch(graph: Graph, batch: int) -> None:
    if batch > 1:
        graph.set_metadata({BATCH: json.dumps(batch)})


def batch(graph: Graph) -> int:
    return int(json.loads(graph.metadata.get(BATCH, "1")))
