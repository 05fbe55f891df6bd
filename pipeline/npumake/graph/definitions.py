"""Expands operators by ONNX's own function definitions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import onnx
import onnx.inliner
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.graph import Graph
from npumake.graph.origin import origin, originate
from npumake.graph.parse import first_line, normal


def by_definition(graph: Graph, op_types: Collection[str]) -> Graph:
    """The graph with these operators replaced by ONNX's function bodies, if ONNX defines one for
    the graph's opset; else `graph` itself. The new nodes inherit the origins of the replaced ones.

    Raises GraphError for a body that onnx cannot inline.
    """
    named = graph.nodes(*op_types) if op_types else []
    defined = [node for node in named if _has_body(node.op_type, graph.opset)]
    if not defined:
        return graph
    for node in defined:
        _write_defaults(node, graph.opset)
    names = sorted({("", node.op_type) for node in defined})
    try:
        inlined = onnx.inliner.inline_selected_functions(
            ir.to_proto(graph.model), names, inline_schema_functions=True
        )
    except (RuntimeError, TypeError) as error:  # an older onnx inlines none, with a TypeError
        raise GraphError(f"onnx cannot inline {names[0][1]}: {first_line(error)}") from error
    result = normal(ir.from_proto(inlined))
    sources = [name for node in defined for name in origin(node)]
    existing = {node.name for node in graph.nodes()}
    for node in result.nodes():
        if node.name not in existing:
            originate(node, sources)
    return result


def _write_defaults(node: ir.Node, opset: int) -> None:
    """Writes default attributes: the bodies refer to them, and onnx's inliner does not add
    them."""
    for name, declared in onnx.defs.get_schema(node.op_type, opset, "").attributes.items():
        if name not in node.attributes and declared.default_value.type:
            node.attributes.add(ir.serde.deserialize_attribute(declared.default_value))


def _has_body(op_type: str, opset: int) -> bool:
    if not onnx.defs.has(op_type, opset, ""):
        return False
    schema: Any = onnx.defs.get_schema(op_type, opset, "")  # onnx's stubs name neither
    return bool(schema.has_function or schema.has_context_dependent_function)
