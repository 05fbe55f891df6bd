"""What a vendor's own tool takes of an ONNX file, against what the file is.

Here every model is upgraded, so a file beyond the documented limits builds all the same. Whoever
gives it to the vendor's tool meets an error there (`NOT_IMPLEMENTED`, `No Op registered`), and is
reported before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from npumake.graph import Graph, shape
from npumake.targets.target import Target

NOTE = "npumake.format"
CAFFE = "npumake.caffe"


def mark_format(graph: Graph, opset: int, ir_version: int) -> None:
    """Note what the ONNX file was, before it is upgraded."""
    graph.set_metadata({NOTE: json.dumps([opset, ir_version])})


def mark_caffe(graph: Graph) -> None:
    """Note that the model is Caffe's."""
    graph.set_metadata({CAFFE: "true"})


def is_caffe(graph: Graph) -> bool:
    return CAFFE in graph.metadata


def beyond_documented(graph: Graph, target: Target) -> tuple[str, ...]:
    """A sentence for each limit of the vendor's tool that the model's own file is beyond; none for
    a model that was no ONNX file, and where nothing is documented."""
    accepts = target.accepts
    if accepts is None or NOTE not in graph.metadata:
        return ()
    outputs = len(graph.outputs)
    opset, ir_version = json.loads(graph.metadata[NOTE])
    outputs_note = (
        f"it has {outputs} outputs, {target.vendor}'s own tool takes at most {accepts.outputs}"
    )
    too_many = accepts.outputs is not None and outputs > accepts.outputs
    limits = {
        f"opset {opset}": (accepts.opset[0], opset, accepts.opset[-1]),
        f"IR version {ir_version}": (0, ir_version, accepts.ir_version or ir_version),
    }
    notes = tuple(
        f"the model's file is of {phrase}, documented for {target.name}: "
        f"{_range(low, high)}; {target.vendor}'s own tool may refuse it"
        for phrase, (low, count, high) in limits.items()
        if not low <= count <= high
    )
    return (*notes, *([outputs_note] if too_many else []), *_inputs(graph, target, accepts.rank))


def _inputs(graph: Graph, target: Target, rank: int | None) -> Iterator[str]:
    """A sentence for each input of another rank, or of several images."""
    for value in graph.inputs if rank else ():
        size, name = shape(value), value.name
        if len(size) != rank:
            yield (
                f"input `{name}` has {len(size)} dimensions: "
                f"{target.vendor}'s own tool takes {rank}"
            )
        elif size[0] != 1:
            yield (
                f"input `{name}` has a batch of {size[0]}: {target.vendor}'s own tool takes 1, "
                "and `input_batch` for more"
            )


def _range(low: int, high: int) -> str:
    if not low:
        return f"at most {high}"
    return f"{low}..{high}" if low < high else str(high)
