"""Splits a detector's head, so that each part has its own range.

A joint tensor of boxes, scores and mask coefficients has one 8-bit scale, set by the widest part.

    hints without strides: the operands of the last concatenations, boxes as (xy, wh)
    hints with strides:    per scale the convolutions before the spatial concatenation, raw

Elementwise arithmetic behind a concatenation, such as boxes times stride, moves to its operands.
The results are equal. `npumake.detection.decode` computes the nodes that are cut off. Source:
EdgeFirst's description of Smart Quantization and of `outputs[]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from npumake.detection.describe import (
    CHANNELS,
    DECODER,
    DIMENSION,
    activation_of,
    flat_shape,
    is_normalized,
    joins,
    named_dims,
    operands,
    other_output,
    part_output,
    type_of_part,
)
from npumake.detection.metadata import Boundary, SplitHint
from npumake.detection.outputs import DetectorOutput
from npumake.detection.scales import at_scales, raw_scales
from npumake.errors import GraphError, did_you_mean
from npumake.graph import Graph, Node, Value, array, producer, shape


def split_outputs(
    graph: Graph, hints: Sequence[SplitHint]
) -> tuple[Graph, tuple[DetectorOutput, ...]]:
    """A graph with the physical tensors as outputs, in the order of the logical `outputs[]`.

    Shapes must be known. Other outputs stay; mask prototypes are typed. Raises GraphError if a hint
    does not fit the graph.
    """
    graph = graph.copy()
    entries: list[tuple[DetectorOutput, list[Value]]] = []
    by_target = {hint.target: hint for hint in hints}
    names = [str(value.name) for value in graph.outputs]
    for target in by_target:
        if target not in names:
            raise GraphError(f"no output `{target}` to split", hint=did_you_mean(target, names))
    masked = any(part.name == "mask_coefs" for hint in hints for part in hint.boundaries)
    for value in graph.outputs:
        hint = by_target.get(str(value.name))
        entries += (
            _parts(graph, value, hint) if hint else [(other_output(graph, value, masked), [value])]
        )
    values = [value for _, values in entries for value in values]
    if len(set(values)) < len(values):
        raise GraphError("two parts of the head are the same tensor", hint="check `split_hints`")
    graph.expose(str(value.name) for value in values)
    graph.drop_unused()
    outputs = tuple(_named(graph, output, values) for output, values in entries)
    return graph, outputs


def _parts(
    graph: Graph, target: Value, hint: SplitHint
) -> Iterator[tuple[DetectorOutput, list[Value]]]:
    """Each boundary as a logical output and its tensors."""
    if hint.anchors_per_cell > 1:
        message = f"a head of {hint.anchors_per_cell} anchors per cell cannot be split"
        raise GraphError(message, str(target.name), "only anchor-free heads can: leave `split` out")
    if shape(target)[1:2] != (hint.boundaries[-1].end,):
        message = f"`split_hints` speak of {hint.boundaries[-1].end} channels"
        raise GraphError(message, str(target.name), f"its shape is {list(shape(target))}")
    flat_shape(target)
    for boundary in hint.boundaries:
        leaf = _leaf(target, boundary)
        if hint.strides:
            yield _scaled(graph, leaf, boundary, hint.strides)
        else:
            yield _flat(graph, leaf, boundary)


def _leaf(target: Value, boundary: Boundary) -> list[Value]:
    """The concatenated operands that form these channels. Raises GraphError."""
    leaves = operands(target, CHANNELS)
    ends = list(accumulate(shape(leaf)[CHANNELS] for leaf in leaves))
    starts = [0, *ends[:-1]]
    if boundary.start in starts and boundary.end in ends:
        return leaves[starts.index(boundary.start) : ends.index(boundary.end) + 1]
    message = f"`{target.name}` is not joined at channels {boundary.start}..{boundary.end}"
    raise GraphError(message, f"split_hints: {boundary.name}", f"it is at {[0, *ends]}")


def _flat(
    graph: Graph, leaves: list[Value], boundary: Boundary
) -> tuple[DetectorOutput, list[Value]]:
    if boundary.name != "boxes":
        if len(leaves) > 1:
            message = f"`{boundary.name}` is {len(leaves)} tensors"
            sizes = [shape(leaf)[CHANNELS] for leaf in leaves]
            hint = f"give a boundary to each: they have {sizes} channels"
            raise GraphError(message, f"split_hints: {boundary.name}", hint)
        return part_output(leaves[0], boundary), leaves
    leaf = leaves[0]
    normalized = is_normalized(graph, leaf)  # of two, the centers
    parts = leaves if len(leaves) == 2 else _distributed(graph, leaf)
    _, _, count = flat_shape(leaf)
    boxes = DetectorOutput(
        "boxes",
        (1, 4, count),
        "boxes",
        named_dims(1, "box_coords", 4, count),
        decoder=DECODER,
        encoding="direct",
        normalized=normalized,
    )
    if len(parts) != 2:
        return replace(boxes, dtype="float32"), [leaf]
    children = tuple(
        DetectorOutput(
            "", shape(part), kind, named_dims(1, "box_coords", 2, count), dtype="float32"
        )
        for part, kind in zip(parts, ("boxes_xy", "boxes_wh"), strict=True)
    )
    return replace(boxes, outputs=children), parts


def _distributed(graph: Graph, value: Value) -> list[Value]:
    """f(concat(a, b)) as [f(a), f(b)] if f scales all channels equally; else the value itself."""
    chain: list[Node] = []
    node = producer(value)
    while node and (scaled := _scaled_value(node)):
        chain.insert(0, node)
        node = producer(scaled)
    if node is None or not joins(node, CHANNELS):
        return [value]
    if [shape(operand)[CHANNELS] for operand in node.inputs if operand] != [2, 2]:
        return [value]
    parts = []
    for operand, tag in zip(node.inputs, ("xy", "wh"), strict=True):
        assert operand is not None
        part = operand
        for step in chain:
            inputs = [part if array(v) is None else v for v in step.inputs]
            name = f"{step.outputs[0].name}_{tag}"
            part, like = graph.insert(step.op_type, inputs, name, after=step), operand
            graph.set_layout(part, range(3), like)
        parts.append(part)
    return parts


def _scaled(
    graph: Graph, leaves: list[Value], boundary: Boundary, strides: tuple[int, ...]
) -> tuple[DetectorOutput, list[Value]]:
    """A boundary's raw tensors per scale, smallest stride first."""
    tensors = raw_scales(graph, leaves, strides)
    channels = shape(tensors[0])[1]
    count = sum(shape(value)[2] * shape(value)[3] for value in tensors)
    logical = boundary.end - boundary.start
    activation = boundary.activation or activation_of(leaves[0])
    children = at_scales(tensors, type_of_part(boundary), strides)
    output = DetectorOutput(
        boundary.name,
        (1, logical, count),
        type_of_part(boundary),
        named_dims(1, DIMENSION.get(boundary.name, "num_features"), logical, count),
        decoder=DECODER,
        outputs=children,
    )
    if boundary.name != "boxes":
        if channels != logical:
            message = f"{channels} channels per cell, the hint has {logical}"
            hint = f"end its `channels` at {boundary.start + channels}"
            raise GraphError(message, f"split_hints: {boundary.name}", hint)
        form = "per_class" if boundary.name == "scores" else None
        return replace(output, score_format=form, activation_required=activation), tensors
    encoding = "dfl" if channels > 4 else "direct"
    return replace(output, encoding=encoding, normalized=False), tensors


def _named(graph: Graph, output: DetectorOutput, values: list[Value]) -> DetectorOutput:
    """The entry with its tensors' names; in entry and graph `/` and `.` become `_`."""
    names = []
    for value in values:
        plain = str(value.name).replace("/", "_").replace(".", "_")
        if plain != value.name:
            graph.rename(value, graph.free_name(plain))
        names.append(str(value.name))
    if not output.outputs:
        return replace(output, name=names[0])
    children = zip(output.outputs, names, strict=True)
    return replace(output, outputs=tuple(replace(child, name=name) for child, name in children))


def _scaled_value(node: Node) -> Value | None:
    """The operand of a Mul or Div by constants that are equal for all channels; else None."""
    if node.op_type not in ("Mul", "Div"):
        return None
    constants = [constant for value in node.inputs if (constant := array(value)) is not None]
    computed = [value for value in node.inputs if value is not None and array(value) is None]
    alike = all(constant.ndim < 2 or constant.shape[-2] == 1 for constant in constants)
    return computed[0] if len(computed) == 1 and alike else None
