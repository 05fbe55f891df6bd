"""A detector's outputs in the form of its chip's converter.

    scores behind a Sigmoid   uint8, 1/256, 0
    [1, channels, boxes]      a part of the head: [1, channels, boxes, 1], the last axis `padding`

The codes are the same values in the same order. Source: outputs of the Ara2 Converter 1.2.4, as its
authors published them (EdgeFirst's HAL, testdata/ara2_*_edgefirst.json).
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
    Value,
    declare,
    dtype,
    only_consumer,
    producer,
    shape,
)
from npumake.graph.qdq import (
    Grid,
    dequantizer_of,
    insert_pair,
    is_dequantize,
    is_qdq,
    is_quantize,
    pair_of,
    scalar_grid_of,
    set_grid,
    store_grid,
)
from npumake.targets.target import Target

PROBABILITIES = Grid(np.array(1 / 256, np.float32), np.array(0, np.uint8))
PADDED_RANK = 4  # of every tensor on the chip
PADDING = ("padding", 1)
WHOLE_HEAD_TYPES = ("detection", "detections", None)


def as_converted(graph: Graph, target: Target) -> None:
    """Edits a quantized graph in place; a target without converter or a model without metadata
    stays."""
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
    """Moves the output of a Sigmoid to the grid of a probability, if nothing else reads it."""
    pair = pair_of(value)
    if pair is None or pair[0].inputs[0] is None:
        return
    quantizer, dequantizer = pair
    sigmoid = producer(pair[0].inputs[0])
    alone = only_consumer(quantizer.outputs[0]) is dequantizer and not value.uses()
    if sigmoid is None or sigmoid.op_type != "Sigmoid" or not alone:
        return
    if dtype(quantizer.outputs[0]) not in ("int8", "uint8"):
        return
    name = str(quantizer.outputs[0].name)
    set_grid(graph, pair, *store_grid(graph, name, PROBABILITIES))
    graph.set_type(quantizer.outputs[0], "uint8")


def _keep_one_kind(graph: Graph, tensors: Sequence[DetectorOutput]) -> None:
    """If the CPU computes one of the tensors to decode, it outputs them all: a decoder takes codes
    or real numbers, not both."""
    names = {tensor.name for tensor in tensors}
    values = [value for value in graph.outputs if str(value.name) in names]
    makers = [producer(value) for value in values]
    if all(map(is_qdq, makers)) or any(map(is_quantize, makers)):
        return
    for value, maker in zip(values, makers, strict=True):
        if is_dequantize(maker):
            copy = graph.insert("Identity", [value], f"{value.name}_copy", maker)
            declare(copy, shape(value), value)
            graph.replace_output(value, copy)


def _pad(graph: Graph, value: Value) -> None:
    """Reshapes the output on the unit that computes it; codes stay as they are."""
    maker = producer(value)
    if maker is None or is_quantize(maker):
        return  # a quantized output
    name, dims = f"{value.name}_padded", (*shape(value), PADDING[1])
    to = graph.constant(f"{name}_shape", np.array(dims, np.int64))
    padded = graph.insert("Reshape", [value, to], name, maker)
    declare(padded, dims, value)
    if (own := scalar_grid_of(dequantizer_of(value))) is not None:
        padded = insert_pair(graph, padded, own, name).real
    graph.replace_output(value, padded)


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
