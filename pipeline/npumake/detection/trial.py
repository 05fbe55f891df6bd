"""Decodes zeros in place of outputs, so that metadata that do not fit them fail before a build."""

from __future__ import annotations

import numpy as np

from npumake.detection.decode import Rules, decode
from npumake.detection.metadata import Metadata
from npumake.errors import GraphError, Route
from npumake.graph import Graph, shape

RULES = Rules(candidates=1)


def refuse_undecodable(graph: Graph, metadata: Metadata, size: tuple[int, int]) -> None:
    """`size` is (height, width) of the model's input. Raises GraphError, at `model.metadata`, if
    the boxes of `metadata` cannot be decoded from the graph's outputs."""
    if not metadata.has_decoder:
        return
    arrays = {str(value.name): np.zeros(shape(value), np.float32) for value in graph.outputs}
    try:
        decode(arrays, metadata.outputs, size, RULES)
    except GraphError as error:
        raise GraphError(
            f"the metadata does not fit the model: {error.what}",
            Route("model.metadata"),
            error.hint,
        ) from error
