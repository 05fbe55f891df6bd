"""Records in a fused node the nodes that it replaced, its parts.

A vendor's tool reads the model's own file, so its limits hold for each part, with the part's own
shapes and constants. The record is JSON in the node's metadata. An operand is stored as its shape
and type, a constant also by its values, or by whether a zero is among them if it is large.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import onnx_ir as ir

from npumake.graph.match import array, attribute

NOTE = "npumake.parts"
MAX_STORED = 64  # values of a constant
PLAIN_ATTRIBUTES = frozenset(
    {
        ir.AttributeType.FLOAT,
        ir.AttributeType.FLOATS,
        ir.AttributeType.INT,
        ir.AttributeType.INTS,
        ir.AttributeType.STRING,
        ir.AttributeType.STRINGS,
    }
)


def record_parts(node: ir.Node, parts: Iterable[ir.Node]) -> None:
    """Records the parts of a fused node; a part that is fused itself counts as its own parts."""
    whole = (inner for part in parts for inner in recorded_parts(part) or (part,))
    node.metadata_props[NOTE] = json.dumps([_written(part) for part in whole])


def forget_parts(node: ir.Node) -> None:
    """Drops the record of a node that becomes another operator."""
    node.metadata_props.pop(NOTE, None)


def recorded_parts(node: ir.Node) -> tuple[ir.Node, ...]:
    """The parts, each a node without a graph; empty for a node that replaces no others."""
    text = node.metadata_props.get(NOTE)
    return () if text is None else _read(text)


def _written(node: ir.Node) -> dict[str, Any]:
    names = [name for name, item in node.attributes.items() if item.type in PLAIN_ATTRIBUTES]
    return {
        "name": node.name,
        "operator": node.op_type,
        "attributes": {name: attribute(node, name) for name in sorted(names)},
        "inputs": [None if value is None else _written_value(value) for value in node.inputs],
        "outputs": [_written_value(value) for value in node.outputs],
    }


def _written_value(value: ir.Value) -> dict[str, Any]:
    dims = None if value.shape is None else [_size(size) for size in value.shape]
    document: dict[str, Any] = {"shape": dims}
    if value.dtype is not None:
        document["type"] = int(value.dtype)
    numbers = array(value)
    if numbers is None:
        return document
    if numbers.size <= MAX_STORED and numbers.dtype.kind in "fiub":
        return document | {"values": numbers.reshape(-1).tolist()}
    return document | {"zero": bool((numbers == 0).any())}


def _size(size: object) -> int | None:
    return size if isinstance(size, int) else None


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[ir.Node, ...]:
    return tuple(
        ir.node(
            part["operator"],
            [None if value is None else _value(value) for value in part["inputs"]],
            part["attributes"],
            outputs=[_value(value) for value in part["outputs"]],
            name=part["name"],
        )
        for part in json.loads(text)
    )


def _value(document: dict[str, Any]) -> ir.Value:
    dims = document["shape"]
    value = ir.Value(shape=None if dims is None else ir.Shape(dims))
    if "type" in document:
        value.type = ir.TensorType(ir.DataType(document["type"]))
    if "values" in document or "zero" in document:
        value.const_value = ir.Tensor(_numbers(document))
    return value


def _numbers(document: dict[str, Any]) -> np.ndarray:
    """The array of a constant; ones in place of values that are not stored."""
    dtype, dims = ir.DataType(document["type"]).numpy(), document["shape"]
    if "values" in document:
        return np.array(document["values"], dtype).reshape(dims)
    numbers = np.ones(dims, dtype)
    numbers.reshape(-1)[:1] = 0 if document["zero"] else 1
    return numbers
