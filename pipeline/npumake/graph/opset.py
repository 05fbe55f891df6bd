"""Raises the opset for newer types: ONNX has int16 Q/DQ since opset 21.

Opset 21 only adds types to those of 20, except for GroupNormalization.
"""

from __future__ import annotations

from functools import cache

import onnx

from npumake.errors import GraphError
from npumake.graph.graph import Graph

INT16_OPSET = 21
INT16_IR_VERSION = 10
SWISH_OPSET = 24
CHANGED_MEANING = "GroupNormalization"
SAME_MEANING_SINCE = 20


def is_operator(op_type: str) -> bool:
    """Whether ONNX defines, or ever defined, this operator."""
    return bool(onnx.defs.has(op_type))


def operator_called(name: str) -> str | None:
    """ONNX's operator of this name, ignoring case; None if there is none."""
    return _operators().get(name.lower())


@cache
def _operators() -> dict[str, str]:
    schemas = onnx.defs.get_all_schemas_with_history()
    return {schema.name.lower(): schema.name for schema in schemas if not schema.domain}


def allow_swish(graph: Graph) -> bool:
    """Raises the graph to the opset with Swish; False if an operator would change its
    meaning."""
    if not may_have_int16(graph):
        return False
    graph.model.graph.opset_imports[""] = max(graph.opset, SWISH_OPSET)
    graph.model.ir_version = max(graph.model.ir_version, INT16_IR_VERSION)
    return True


def allow_int16(graph: Graph) -> None:
    """Raises the graph to an opset with int16 Q/DQ. Raises GraphError if an operator would
    change its meaning."""
    if graph.opset >= INT16_OPSET:
        return
    if not may_have_int16(graph):
        named = ", ".join(f"`{node.name}`" for node in graph.nodes(CHANGED_MEANING))
        changed = f"{CHANGED_MEANING} ({named})" if named else f"opset {graph.opset}"
        message = f"int16 needs opset {INT16_OPSET}, where {changed} means something else"
        raise GraphError(message, hint="leave int16 out for this model")
    graph.model.graph.opset_imports[""] = INT16_OPSET
    graph.model.ir_version = max(graph.model.ir_version, INT16_IR_VERSION)


def may_have_int16(graph: Graph) -> bool:
    """Whether no operator changes its meaning at an opset with int16 Q/DQ."""
    is_old = graph.opset < SAME_MEANING_SINCE or graph.nodes(CHANGED_MEANING)
    return graph.opset >= INT16_OPSET or not is_old
