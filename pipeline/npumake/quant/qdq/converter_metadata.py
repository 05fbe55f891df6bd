"""Metadata of a compiled detector: the model's own, completed by the converter's block.

    ara2: {version, timestamp, task, qmode, target, int16_mode, splits_applied, calibration,
           calibration_geometry}
    compilation: {target, format, hw_metadata: {input_size, output_size}}

The timestamp is always EPOCH, the date of every bundle member, so that builds are reproducible.
Unknown values are left out: `task` if the project names none, the calibration if samples are
separate files, and the measurements of the vendor's compiler (`ppa`, processors and scratch memory
in `hw_metadata`).

    input_size, output_size   bytes of all tensors, each aligned to ALIGNMENT_BYTES

Source: EdgeFirst's metadata schema v2, what converters add. ALIGNMENT_BYTES is the one power of two
that gives the output sizes of both published artifacts (1,793,792 and 2,096,384).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npumake.bundle.archive import FORMAT, VERSION, Bundle
from npumake.detection.carriers import members
from npumake.detection.metadata import Metadata, replaced, with_block
from npumake.detection.notes import box_nodes, labels_of, metadata_of, origin_of_samples
from npumake.digest import Json
from npumake.graph import Graph, Value, dtype, shape
from npumake.graph.qdq import is_quantize
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.target import Converter, Target

EPOCH = "1980-01-01T00:00:00Z"
ALIGNMENT_BYTES = 256  # bytes
PICTURE_RANK = 4
MAX_PICTURE_CHANNELS = 4
NHWC = ("batch", "height", "width", "num_features")
WHOLE_HEAD = "detection"  # type of boxes, scores and coefficients in one tensor


def members_beside(quantized: Graph, target: Target, task: str | None = None) -> dict[str, bytes]:
    """Metadata and classes of `quantized` as bundle members; empty for a model without both.

    `task` is the converter's job. Raises ProjectError for metadata that this converter has
    completed before.
    """
    metadata = metadata_of(quantized)
    if metadata is None:
        return members(None, labels_of(quantized))
    metadata = _with_input_dims(metadata, quantized)
    if target.converter is not None:
        metadata = _converted(metadata, quantized, target.converter, task)
    return members(metadata, labels_of(quantized))


def _with_input_dims(metadata: Metadata, graph: Graph) -> Metadata:
    """Adds the names of the input's dimensions: without them EdgeFirst's decoder assumes NHWC and
    divides boxes by the number of channels."""
    own = metadata.document.get("input") or {}
    dims = metadata.input_shape or shape(graph.inputs[0])
    if len(dims) != PICTURE_RANK or "dshape" in own:
        return metadata
    first = dims[1] <= MAX_PICTURE_CHANNELS or dims[3] > MAX_PICTURE_CHANNELS
    names = ("batch", "num_features", "height", "width") if first else NHWC
    named = [{name: size} for name, size in zip(names, dims, strict=True)]
    return replaced(metadata, {"input": {**own, "shape": list(dims), "dshape": named}})


def _converted(
    metadata: Metadata, graph: Graph, converter: Converter, task: str | None
) -> Metadata:
    kinds = {output.type for output in metadata.outputs}
    cut = "boxes" in kinds and WHOLE_HEAD not in kinds
    block: dict[str, Json] = {
        "version": f"{FORMAT} {VERSION}",
        "timestamp": EPOCH,
        **({} if task is None else {"task": task}),
        "qmode": converter.qmode,
        "target": converter.target,
        "int16_mode": "smart" if _has_wide_boxes(graph) else "none",
        "splits_applied": ["quantization_split"] if cut else [],
    }
    if "calibration" in metadata.document:
        block["calibration"] = metadata.document["calibration"]
    block |= origin_of_samples(graph)
    metadata = with_block(metadata, converter.block, block)
    if "compilation" in metadata.document:
        return metadata
    compilation: dict[str, Json] = {
        "target": converter.target,
        "format": Bundle.suffix.removeprefix("."),
        "hw_metadata": {
            "input_size": sum(map(_fed_bytes, graph.inputs)),
            "output_size": sum(
                _bytes(tensor.shape, tensor.dtype)
                for output in metadata.outputs
                for tensor in output.tensors
            ),
        },
    }
    return with_block(metadata, "compilation", compilation)


def _fed_bytes(value: Value) -> int:
    """The size of an input in bytes, as codes if only a Q reads it."""
    read = {use.node for use in value.uses()}
    codes = {dtype(node.outputs[0]) for node in read if is_quantize(node)}
    alone = len(codes) == 1 and all(map(is_quantize, read))
    return _bytes(shape(value), codes.pop() if alone else dtype(value))


def _bytes(dims: Sequence[int], type: str | None) -> int:
    size = math.prod(dims) * np.dtype(type or "float32").itemsize
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _has_wide_boxes(graph: Graph) -> bool:
    boxes = (
        value for name in box_nodes(graph) for node in graph.find(name) for value in node.outputs
    )
    return any(
        is_quantize(use.node) and dtype(use.node.outputs[0]) == WIDE
        for value in boxes
        for use in value.uses()
    )
