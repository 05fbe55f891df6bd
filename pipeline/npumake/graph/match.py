"""Queries on nodes and values. A query without a result returns None or the default."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from npumake.errors import GraphError

KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The attribute as a Python value: int, float, str, tuple or array."""
    attr = node.attributes.get(name)
    if attr is None or attr.value is None:
        return default
    if attr.type == ir.AttributeType.TENSOR:
        return attr.value.numpy()
    return tuple(attr.value) if isinstance(attr.value, list | tuple) else attr.value


def array(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant; None for a computed value or an input."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def is_given(value: ir.Value | None) -> bool:
    """Whether the value is a constant, without loading its array."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def shape(value: ir.Value) -> tuple[int, ...]:
    """The static shape. Raises GraphError for an unknown dimension."""
    dims = None if value.shape is None else tuple(value.shape)
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        sizes = [str(dim) if isinstance(dim, int) else "?" for dim in dims or ()]
        text = "unknown" if dims is None else f"[{', '.join(sizes)}]"
        raise GraphError(
            f"the shape of `{value.name}` is not static: {text}", hint=_how_to_know(value)
        )
    return tuple(int(dim) for dim in dims if isinstance(dim, int))


def _how_to_know(value: ir.Value) -> str:
    maker = value.producer()
    inputs = () if maker is None or maker.graph is None else maker.graph.inputs
    shapes = [x.shape for x in inputs]
    if not inputs or not all(dims is not None and dims.is_static() for dims in shapes):
        return "give every input a fixed shape under `inputs:`"
    end = "end the model before it, by `model.outputs`"
    deciding = ", ".join(f"{name}: {{value: ...}}" for name in deciding_inputs(value))
    freeze = f"freeze what never changes, by `inputs: {{{deciding}}}`, or " if deciding else ""
    return f"it depends on input values: {freeze}{end}"


def deciding_inputs(value: ir.Value) -> list[str]:
    """The graph inputs of integers or booleans that `value` is computed from, in their order.

    Usually these are settings, such as a sampling rate, that decide a branch or a shape."""
    queue, ancestors = [value], {value}
    while queue:
        maker = queue.pop().producer()
        sources = {source for source in maker.inputs if source is not None} if maker else set()
        queue += sources - ancestors
        ancestors |= sources
    graph = next((x.graph for x in ancestors if x.is_graph_input()), None)
    inputs = () if graph is None else graph.inputs
    return [str(x.name) for x in inputs if x in ancestors and _is_discrete(x)]


def _is_discrete(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.numpy().kind in "iub"


def dtype(value: ir.Value) -> str:
    """The NumPy name of the element type. Raises GraphError if it is unknown."""
    if value.dtype is None:
        raise GraphError(f"the type of `{value.name}` is not known")
    return str(value.dtype.numpy())


def type_number(dtype: str) -> int:
    """ONNX's number of a NumPy element type, as in the `to` of a Cast."""
    return int(ir.DataType.from_numpy(np.dtype(dtype)))


def type_name(number: int) -> str:
    """The NumPy name of ONNX's element type."""
    return str(ir.DataType(number).numpy())


def open_dimensions(value: ir.Value) -> str:
    """The shape as text if a dimension is not fixed; empty otherwise."""
    if value.shape is None:
        return "unknown shape"
    if all(isinstance(dim, int) for dim in value.shape):
        return ""
    dims = (dim if isinstance(dim, int) else (dim.value or "?") for dim in value.shape)
    return f"[{', '.join(str(dim) for dim in dims)}]"


def is_float(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT


def is_foreign(node: ir.Node | onnx.NodeProto) -> bool:
    """Whether neither ONNX nor onnxruntime defines the operator."""
    return node.domain not in KNOWN_DOMAINS


def producer(value: ir.Value) -> ir.Node | None:
    return value.producer()


def only_consumer(value: ir.Value) -> ir.Node | None:
    """The only node that reads `value`; None for several readers, a graph output, or a reader
    inside a branch or loop body."""
    uses = tuple(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    reader = uses[0].node
    return reader if reader.graph is value.graph else None
