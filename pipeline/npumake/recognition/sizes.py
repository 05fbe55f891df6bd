"""Sizes that a model with open dimensions was made for, by its metadata or its exporter."""

from __future__ import annotations

from npumake.graph import Graph
from npumake.recognition.ultralytics import exported_size

# PaddleOCR, by the rank of its output: angle classifier, text recognizer, text detector.
PADDLE_SIZES = {2: (48, 192), 3: (48, 320), 4: (640, 640)}


def preferred_sizes(graph: Graph) -> tuple[tuple[int, int], ...]:
    """(height, width), the most likely first; () if unknown."""
    if (size := exported_size(graph.metadata)) is not None:
        return (size,)
    dims = [str(d) for value in graph.inputs for d in value.shape or ()]
    is_paddle = "paddle" in (graph.model.producer_name or "").lower()
    if is_paddle or any("p2o." in dim for dim in dims):
        ranks = [len(value.shape or ()) for value in graph.outputs]
        return tuple(PADDLE_SIZES[rank] for rank in ranks[:1] if rank in PADDLE_SIZES)
    return ()
