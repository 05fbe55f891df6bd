"""Finds the raw tensors of a head per scale, in front of its spatial concatenation.

conv [1, C, h, w] per scale → (joined with others by channels) → reshape [1, C, h*w]
    → concat over h*w → (split by channels) → decoding
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from npumake.detection.outputs import DetectorOutput
from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, attribute, producer, shape

FEATURES = "num_features"
RESHAPES = ("Reshape", "Flatten")
WITHOUT_STRIDES = "leave `strides` out of `split_hints`"


def joined_axis(concat: Node) -> int:
    """The axis a Concat joins, counted from 0."""
    return int(attribute(concat, "axis", 0)) % len(shape(concat.outputs[0]))


def raw_scales(graph: Graph, leaves: Sequence[Value], strides: tuple[int, ...]) -> list[Value]:
    """The tensor (1, C, h, w) per stride that `leaves` are decoded from. Raises GraphError."""
    name = str(leaves[0].name)
    needed = _ancestors(leaves)
    concat = next(
        (
            node
            for node in reversed(graph.nodes("Concat"))
            if node.outputs[0] in needed and _is_spatial(node, len(strides))
        ),
        None,
    )
    if concat is None:
        hint = f"a Concat of {len(strides)} scales precedes a head that can be split so"
        raise GraphError(f"`{name}` is not joined from {len(strides)} scales", name, hint)
    channels = _channels(concat.outputs[0], needed)
    tensors = [_before_reshape(value, channels) for value in concat.inputs if value is not None]
    tensors.sort(key=lambda value: -shape(value)[2] * shape(value)[3])
    height = shape(graph.inputs[0])[2]
    for value, stride in zip(tensors, strides, strict=True):
        if shape(value)[2] != -(-height // stride):
            message = (
                f"{shape(value)[2]} rows of cells for stride {stride} of a picture of {height}"
            )
            raise GraphError(message, str(value.name), "check `strides` in `split_hints`")
    return tensors


def at_scales(
    tensors: Sequence[Value], kind: str | None, strides: Sequence[int]
) -> tuple[DetectorOutput, ...]:
    """The physical entries, still without names."""
    names = ("batch", FEATURES, "height", "width")
    return tuple(
        DetectorOutput(
            "",
            shape(value),
            kind,
            tuple(zip(names, shape(value), strict=True)),
            (stride, stride),
            scale_index=index,
            dtype="float32",
        )
        for index, (value, stride) in enumerate(zip(tensors, strides, strict=True))
    )


def _ancestors(values: Sequence[Value]) -> set[Value]:
    """The values and all their ancestors."""
    ancestors, todo = set(values), list(values)
    while todo:
        node = producer(todo.pop())
        for value in node.inputs if node else ():
            if value is not None and value not in ancestors:
                ancestors.add(value)
                todo.append(value)
    return ancestors


def _is_spatial(node: Node, count: int) -> bool:
    output = node.outputs[0]
    return len(shape(output)) == 3 and joined_axis(node) == 2 and len(node.inputs) == count


def _channels(joined: Value, needed: set[Value]) -> tuple[int, int]:
    """The smallest channel range of `joined` that covers its needed readers."""
    ranges = []
    for reader in dict.fromkeys(use.node for use in joined.uses()):
        indices = [index for index, output in enumerate(reader.outputs) if output in needed]
        ranges += [_channel_range(reader, index, shape(joined)[1]) for index in indices]
    if not ranges:  # the leaf is `joined` itself
        return 0, shape(joined)[1]
    return min(start for start, _ in ranges), max(end for _, end in ranges)


def _channel_range(reader: Node, index: int, channels: int) -> tuple[int, int]:
    """The channel range that output `index` of a Split or Slice takes; all for other nodes."""
    if reader.op_type == "Split" and attribute(reader, "axis", 0) % 3 == 1:
        ends = list(accumulate(shape(output)[1] for output in reader.outputs))
        return ends[index] - shape(reader.outputs[index])[1], ends[index]
    if reader.op_type == "Slice":
        start, axes = array(reader.inputs[1]), _axes(reader)
        if start is not None and axes == [1]:
            first = int(start.ravel()[0]) % channels
            return first, first + shape(reader.outputs[0])[1]
    return 0, channels


def _axes(node: Node) -> list[int]:
    axes = array(node.inputs[3]) if len(node.inputs) > 3 else None
    return [] if axes is None else [int(axis) % 3 for axis in axes.ravel()]


def _before_reshape(value: Value, channels: tuple[int, int]) -> Value:
    """The tensor (1, C, h, w) that `value` is flattened from, of these channels. GraphError."""
    node = producer(value)
    source = node.inputs[0] if node is not None and node.op_type in RESHAPES else None
    if source is None or len(shape(source)) != 4 or shape(source)[1] != shape(value)[1]:
        message = f"`{value.name}` is not flattened from [1, channels, height, width]"
        raise GraphError(message, hint=WITHOUT_STRIDES)
    joint = producer(source)
    if channels == (0, shape(source)[1]):
        return source
    if joint is not None and joint.op_type == "Concat":
        ends = list(accumulate(shape(part)[1] for part in joint.inputs if part is not None))
        for part, end in zip(joint.inputs, ends, strict=True):
            if part is not None and (end - shape(part)[1], end) == channels:
                return part
    message = (
        f"channels {channels[0]}..{channels[1]} of `{source.name}` are not a tensor of their own"
    )
    raise GraphError(message, hint=WITHOUT_STRIDES)
