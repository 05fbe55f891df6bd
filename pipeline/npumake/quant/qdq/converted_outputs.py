"""A detector's outputs in the form of its chip's converter.

    scores behind a Sigmoid   uint8, 1/256, 0
    [1, channels, boxes]      a part of the head: [1, channels, boxes, 1], the last axis `padding`

The codes are the same numbers in the same order. Source: outputs of the Ara2 Converter 1.2.4, as
its authors published them (EdgeFirst's HAL, testdata/ara2_*_edgefirst.json).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npumake.detection.metadata import with_outputs
from npumake.detection.notes import mark_metadata, metadata_of
from npumake.detection.outputs import DetectorOutput
from npumake.graph import (
    Graph,
    Node,
    Value,
    array,
    declare,
    dtype,
    only_consumer,
    producer,
    shape,
)
from npumake.quant.precision.grids import Grid, grid
from npumake.quant.qdq.pairs import DQ, Q, pair
from npumake.targets.target import Target

SCORE_SCALE = 1 / 256  # 8-bit probability
PADDED_RANK = 4  # of every tensor on the chip
PADDING = ("padding", 1)
WHOLE_HEAD_TYPES = ("detection", "detections", None)
NO_GRID = (None, None)


def as_converted(graph: Graph, target: Target) -> None:
    """Edits a quantized graph in place; a target without converter or a model without metadata is
    left alone."""
    metadata = metadata_of(graph)
    if target.converter is None or metadata is None or not metadata.outputs:
        return
    values = {str(value.name): value for value in graph.outputs}
    for output in (tensor for group in metadata.outputs for tensor in group.tensors):
        if output.type == "scores" and output.name in values:
            _as_probabilities(graph, values[output.name])
    _keep_one_kind(graph, [t for output in metadata.outputs if output.type for t in output.tensors])
    for value in graph.outputs:
        if str(value.name) in _padded_names(metadata.outputs):
            _pad(graph, value)
    mark_metadata(graph, with_outputs(metadata, _padded(metadata.outputs), keep_hints=True))


def _as_probabilities(graph: Graph, value: Value) -> None:
    """Moves the output of a Sigmoid to the grid of a probability, where nothing else reads it."""
    dequantizer = producer(value)
    quantizer = None if dequantizer is None else _maker(dequantizer.inputs[0])
    if dequantizer is None or quantizer is None or dequantizer.op_type != DQ:
        return
    sigmoid = _maker(quantizer.inputs[0])
    alone = only_consumer(quantizer.outputs[0]) is dequantizer and not value.uses()
    if sigmoid is None or sigmoid.op_type != "Sigmoid" or not alone:
        return
    if dtype(quantizer.outputs[0]) not in ("int8", "uint8"):
        return
    name = str(quantizer.outputs[0].name)
    scale = graph.constant(f"{name}_scale", np.array(SCORE_SCALE, np.float32))
    zero_point = graph.constant(f"{name}_zero_point", np.array(0, np.uint8))
    for node in (quantizer, dequantizer):
        graph.set_inputs(node, {1: scale, 2: zero_point})
    graph.set_type(quantizer.outputs[0], "uint8")


def _keep_one_kind(graph: Graph, tensors: Sequence[DetectorOutput]) -> None:
    """If the CPU computes one of the tensors to decode, it outputs them all: a decoder takes codes
    or real numbers, not both."""
    names = {tensor.name for tensor in tensors}
    values = [value for value in graph.outputs if str(value.name) in names]
    kinds = [None if (maker := producer(value)) is None else maker.op_type for value in values]
    if all(kind in (Q, DQ) for kind in kinds) or Q in kinds:
        return
    for value, kind in zip(values, kinds, strict=True):
        if kind == DQ:
            copy = graph.insert("Identity", [value], f"{value.name}_copy", producer(value))
            declare(copy, shape(value), value)
            graph.replace_output(value, copy)


def _pad(graph: Graph, value: Value) -> None:
    """Reshapes the output on the unit that computes it; codes stay as they are."""
    maker = producer(value)
    if maker is None or maker.op_type == Q:
        return  # a quantized output
    name, dims = f"{value.name}_padded", (*shape(value), PADDING[1])
    to = graph.constant(f"{name}_shape", np.array(dims, np.int64))
    padded = graph.insert("Reshape", [value, to], name, maker)
    declare(padded, dims, value)
    if (own := _grid(maker)) is not None:
        padded = pair(graph, padded, own, name).real
    graph.replace_output(value, padded)


def _grid(maker: Node) -> Grid | None:
    scale, zero_point = (
        (array(value) for value in maker.inputs[1:]) if maker.op_type == DQ else NO_GRID
    )
    if scale is None or zero_point is None or scale.size != 1:
        return None
    return grid(float(scale.item()), int(zero_point.item()), zero_point.dtype)


def _padded(outputs: Sequence[DetectorOutput]) -> list[DetectorOutput]:
    return [
        replace(
            output,
            shape=(*output.shape, PADDING[1]),
            dshape=(*output.dshape, PADDING) if output.dshape else (),
            outputs=tuple(_padded(output.outputs)),
        )
        if _is_padded(output)
        else output
        for output in outputs
    ]


def _padded_names(outputs: Sequence[DetectorOutput]) -> set[str]:
    return {tensor.name for output in outputs for tensor in output.tensors if _is_padded(tensor)}


def _is_padded(output: DetectorOutput) -> bool:
    """Whether the output is a part of a head; decoders expect a whole head in its trained shape."""
    return len(output.shape) == PADDED_RANK - 1 and output.type not in WHOLE_HEAD_TYPES


def _maker(value: Value | None) -> Node | None:
    return None if value is None else producer(value)
