"""Starts a graph at an inner tensor."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from npumake.graph.graph import Graph, Value


def feed_at(
    graph: Graph,
    value: Value,
    name: str,
    shape: Sequence[int],
    order: Sequence[int] | None = None,
) -> None:
    """Replaces `value` by a new input `name` of this shape; `order` transposes it for the
    readers."""
    kind = value.type or ir.TensorType(ir.DataType.FLOAT)
    readers = [use.node for use in tuple(value.uses())]
    if value.name == name:
        value.name = graph.free_name(f"{name}_before")
    graph.free_name(name)  # reserves it
    feed = ir.Value(name=name, type=kind, shape=ir.Shape(shape))
    graph.model.graph.inputs.append(feed)
    read = feed
    if order is not None:
        first = next(node for node in graph.model.graph if node in readers)
        read = graph.insert("Transpose", [feed], f"{name}_nchw", before=first, perm=list(order))
    graph.replace_readers(value, read, readers)
