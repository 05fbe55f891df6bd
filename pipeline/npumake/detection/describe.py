"""Describes a detector's outputs from its graph: meaning, dimensions and unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from npumake.detection.metadata import Boundary, SplitHint
from npumake.detection.outputs import DetectorOutput, Dims
from npumake.detection.scales import joined_axis
from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, producer, shape

ACTIVATIONS = {"Sigmoid": "sigmoid", "Softmax": "softmax"}
DIMENSION = {"boxes": "box_coords", "scores": "num_classes", "mask_coefs": "num_protos"}
DECODED = frozenset({*DIMENSION, "objectness"})  # parts with a known decoder
CHANNELS = 1  # the channel axis of [1, channels, boxes]
DECODER = "ultralytics"
CONSTANT: dict[str, Callable[[Node, list[np.ndarray]], np.ndarray]] = {
    "Add": lambda node, values: values[0] + values[1],
    "Sub": lambda node, values: values[0] - values[1],
    "Mul": lambda node, values: values[0] * values[1],
    "Div": lambda node, values: values[0] / np.where(values[1] == 0, 1, values[1]),
    "Concat": lambda node, values: np.concatenate(values, joined_axis(node)),
}


def whole_outputs(graph: Graph, hints: Sequence[SplitHint]) -> tuple[DetectorOutput, ...]:
    """`outputs[]` of an uncut head: one tensor of boxes, scores and coefficients."""
    targets = {hint.target: hint for hint in hints}
    masked = any(part.name == "mask_coefs" for hint in hints for part in hint.boundaries)
    return tuple(
        detection_output(graph, value)
        if str(value.name) in targets
        else replace(other_output(graph, value, masked), name=str(value.name))
        for value in graph.outputs
    )


def is_normalized(graph: Graph, boxes: Value) -> bool:
    """Whether decoded boxes are in 0..1 instead of pixels. Evaluates the arithmetic for zero
    distances, so that only its constants decide."""
    chain, todo = set[Node](), [boxes]
    while todo:
        node = producer(todo.pop())
        if node is not None and node.op_type in CONSTANT and node not in chain:
            chain.add(node)
            todo += [value for value in node.inputs if value is not None]
    results: dict[Value, np.ndarray] = {}
    for node in (node for node in graph.nodes() if node in chain):
        values = []
        for value in (value for value in node.inputs if value is not None):
            constant = array(value)
            zeros = np.broadcast_to(np.float32(0), shape(value))
            values.append(results.get(value, zeros) if constant is None else constant)
        results[node.outputs[0]] = CONSTANT[node.op_type](node, values)
    return boxes in results and 0 < float(np.abs(results[boxes]).max(initial=0)) <= 1


def operands(value: Value, axis: int) -> list[Value]:
    """The tensors that nested Concats along `axis` join to `value`, in order."""
    parts, todo = [], [value]
    while todo:
        value = todo.pop()
        node = producer(value)
        if node is None or not joins(node, axis):
            parts.append(value)
            continue
        todo += [operand for operand in reversed(node.inputs) if operand is not None]
    return parts


def joins(node: Node, axis: int) -> bool:
    return node.op_type == "Concat" and joined_axis(node) == axis


def type_of_part(boundary: Boundary) -> str | None:
    """The output type of a part; None for parts without a decoder, such as keypoints."""
    return boundary.name if boundary.name in DECODED else None


def part_output(leaf: Value, boundary: Boundary) -> DetectorOutput:
    """A decoded part as one tensor, with its activation applied or required."""
    _, channels, count = flat_shape(leaf)
    applied = activation_of(leaf)
    return DetectorOutput(
        "",
        shape(leaf),
        type_of_part(boundary),
        named_dims(1, DIMENSION.get(boundary.name, "num_features"), channels, count),
        decoder=DECODER,
        score_format="per_class" if boundary.name == "scores" else None,
        dtype="float32",
        activation_applied=applied,
        activation_required=None if applied else boundary.activation,
    )


def detection_output(graph: Graph, value: Value) -> DetectorOutput:
    _, channels, count = flat_shape(value)
    return DetectorOutput(
        str(value.name),
        shape(value),
        "detection",
        named_dims(1, "num_features", channels, count),
        decoder=DECODER,
        encoding="direct",
        normalized=is_normalized(graph, operands(value, CHANNELS)[0]),
        dtype="float32",
    )


def other_output(graph: Graph, value: Value, masked: bool) -> DetectorOutput:
    """An output without a hint: mask prototypes if there are coefficients, else untyped."""
    dims = shape(value)
    if not masked or len(dims) != 4:
        return DetectorOutput("", dims, dtype="float32")
    named = tuple(zip(("batch", "num_protos", "height", "width"), dims, strict=True))
    stride = shape(graph.inputs[0])[2] // dims[2]
    return DetectorOutput("", dims, "protos", named, (stride, stride), dtype="float32")


def activation_of(leaf: Value) -> str | None:
    node = producer(leaf)
    return ACTIVATIONS.get(node.op_type) if node else None


def named_dims(batch: int, name: str, channels: int, count: int) -> Dims:
    return (("batch", batch), (name, channels), ("num_boxes", count))


def flat_shape(value: Value) -> tuple[int, int, int]:
    """(batch, channels, boxes). Raises GraphError."""
    sizes = shape(value)
    if len(sizes) != 3 or sizes[0] != 1:
        message = f"`{value.name}` of shape {list(sizes)} is not [1, channels, boxes]"
        raise GraphError(message, hint="only such outputs can be a target of `split_hints`")
    return sizes[0], sizes[1], sizes[2]
