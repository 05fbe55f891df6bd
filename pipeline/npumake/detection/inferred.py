"""Infers `outputs[]` from the graph of a model without hints.

[1, 4 + classes (+ K), boxes]   boxes, a Sigmoid's scores and, beside prototypes [1, K, h, w], their
                                coefficients: one `detection`
[1, rows, 6]                    of an end-to-end model: `detections`
others                          untyped, so that no decoder guesses

A head with more channels, such as keypoints or angles, is untyped too: they would decode as
classes.
"""

from __future__ import annotations

from dataclasses import replace

from npumake.detection.describe import (
    CHANNELS,
    DECODER,
    activation_of,
    detection_output,
    joins,
    operands,
    other_output,
)
from npumake.detection.metadata import Metadata, read_metadata
from npumake.detection.outputs import DetectorOutput
from npumake.digest import canonical
from npumake.graph import Graph, Value, producer, shape

COORDINATES = 4  # of a box
ROW = 6  # of an end-to-end model: two corners, a score and a class


def inferred_outputs(graph: Graph, metadata: Metadata) -> tuple[DetectorOutput, ...]:
    """The entries in the order of the graph's outputs."""
    protos = {shape(value)[1] for value in graph.outputs if len(shape(value)) == 4}
    heads = [value for value in graph.outputs if _is_head(value, protos)]
    masked = any(_others(head) for head in heads)
    return tuple(
        _end_to_end(value)
        if metadata.end2end and shape(value)[2:] == (ROW,)
        else detection_output(graph, value)
        if value in heads
        else replace(other_output(graph, value, masked), name=str(value.name))
        for value in graph.outputs
    )


def bare_metadata(graph: Graph) -> Metadata:
    """Minimal metadata for a model without any: its input shape, no classes."""
    document = {
        "schema_version": 2,
        "input": {"shape": list(shape(graph.inputs[0]))},
        "nms": "class_agnostic",
    }
    return read_metadata(canonical(document), "edgefirst.json")


def _is_head(value: Value, protos: set[int]) -> bool:
    """Whether it joins boxes, scores and at most mask coefficients."""
    node = producer(value)
    if len(shape(value)) != 3 or shape(value)[0] != 1 or node is None or not joins(node, CHANNELS):
        return False
    return _scores(value) > 0 and _others(value) in {0, *protos}


def _scores(head: Value) -> int:
    """The number of class channels behind the boxes; 0 without a Sigmoid."""
    first = 0
    for leaf in operands(head, CHANNELS):
        if first == COORDINATES:
            return shape(leaf)[CHANNELS] if activation_of(leaf) == "sigmoid" else 0
        first += shape(leaf)[CHANNELS]
    return 0


def _others(head: Value) -> int:
    """The number of channels behind the scores."""
    return shape(head)[CHANNELS] - COORDINATES - _scores(head)


def _end_to_end(value: Value) -> DetectorOutput:
    names = ("batch", "num_boxes", "num_features")
    dims = tuple(zip(names, shape(value), strict=True))
    return DetectorOutput(
        str(value.name), shape(value), "detections", dims, decoder=DECODER, dtype="float32"
    )
