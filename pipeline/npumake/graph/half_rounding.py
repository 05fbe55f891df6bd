"""The roundings to half precision that a model in float32 has: a Cast to float16 and back.

A value is rounded where it is stored in 16 bits: by a Cast, and behind a node that onnxruntime
computes in float32, if a node with a 16-bit kernel reads it. Between two nodes without such kernels
nothing is rounded, as in onnxruntime 1.2x on a CPU. A model that computes mostly in half precision
was exported so to save memory: its roundings are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from npumake.graph.graph import Graph
from npumake.graph.origin import inherit

HALVES = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
# They keep 16 bits in onnxruntime: measured with a Cast before and behind each.
KEEPING = frozenset(
    {
        *("Clip", "Concat", "Expand", "Flatten", "Gather", "Identity", "Max", "Min", "Reshape"),
        *("Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
Rounding = tuple[ir.Value, ir.DataType]


def half_roundings(graph: Graph) -> list[Rounding]:
    """The rounded values with their 16-bit types; none for a model that is in half precision."""
    scopes = (graph.model.graph, *graph.model.graph.subgraphs())
    types: dict[ir.Value, ir.DataType | None] = {}
    for scope in scopes:
        for node in scope:
            types |= {output: _type(node, output, types) for output in node.outputs}
    computing = [
        types[node.outputs[0]]
        for scope in scopes
        for node in scope
        if node.inputs and node.op_type not in {"Cast", *KEEPING}
    ]
    if sum(kind in HALVES for kind in computing) * 2 > len(computing):
        return []
    return [
        (value, kind)
        for value, kind in types.items()
        if kind in HALVES and _is_stored(value, kind, types)
    ]


def _type(
    node: ir.Node, output: ir.Value, types: dict[ir.Value, ir.DataType | None]
) -> ir.DataType | None:
    """The declared type, else that of the node's first 16-bit input."""
    if node.op_type == "Cast" and "to" in node.attributes:
        return ir.DataType(node.attributes["to"].as_int())
    if output.dtype is not None:
        return output.dtype
    read = [types.get(value, value.dtype) for value in node.inputs if value is not None]
    return next((kind for kind in read if kind in HALVES), next(iter(read), None))


def _is_stored(
    value: ir.Value, kind: ir.DataType, types: dict[ir.Value, ir.DataType | None]
) -> bool:
    maker = value.producer()
    if maker is None or not maker.inputs or maker.op_type in KEEPING:
        return False
    readers = [use.node.op_type for use in value.uses()]
    if maker.op_type != "Cast":
        return any(reader in KEEPING for reader in readers)
    (source,) = maker.inputs
    is_narrowed = source is not None and types.get(source, source.dtype) != kind
    return is_narrowed and any(reader in {"Cast", *KEEPING} for reader in readers)


def round_again(graph: Graph, roundings: Sequence[Rounding]) -> None:
    """Rounds the values, which are float32 now, for all that reads them; an output stays."""
    for value, kind in roundings:
        maker = value.producer()
        scope = maker.graph if maker is not None else None
        if maker is None or scope is None:
            continue
        uses = [(use.node, use.idx) for use in tuple(value.uses())]
        half = _cast(graph, value, kind, "half")
        real = _cast(graph, half.outputs[0], ir.DataType.FLOAT, "rounded")
        for node in (half, real):
            inherit(node, maker)
            node.outputs[0].shape = value.shape
        scope.insert_after(maker, [half, real])
        for reader, index in uses:
            reader.replace_input_with(index, real.outputs[0])


def _cast(graph: Graph, value: ir.Value, kind: ir.DataType, suffix: str) -> ir.Node:
    name = graph.free_name(f"{value.name}_{suffix}")
    output = ir.Value(name=name, type=ir.TensorType(kind))
    return ir.node("Cast", [value], {"to": int(kind)}, outputs=[output], name=name)
