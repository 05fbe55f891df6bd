"""Opens parts of a graph: as sessions of onnxruntime, with Python for custom operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.float_session import FloatSession, float_session, part_session
from npumake.engine.ort import Fusion, OrtSession
from npumake.engine.partial.part import EMPTY, NO_VALUES, Part, as_part
from npumake.graph import Graph, Node, SerializedGraph, SerializedNode, Value


def of_nodes(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[Value], operators: Operators
) -> Part:
    """The part of these nodes, in order, as the graph is now. Raises GraphError."""
    return as_part(part_session(graph, nodes, outputs, operators)) if outputs else EMPTY


def of_tensors(graph: Graph, names: Iterable[str], operators: Operators) -> Part:
    """The part from the graph's inputs to these tensors, which may be inputs. Raises GraphError."""
    watched = graph.copy()
    watched.expose(names)
    watched.drop_unused()
    if not watched.nodes():  # onnxruntime refuses a model without nodes
        exposed = tuple(str(value.name) for value in watched.outputs)
        return Part(exposed, exposed, lambda values: values)
    return as_part(float_session(watched, operators))


def of_serialized(
    written: SerializedGraph,
    pieces: Sequence[SerializedNode],
    outputs: Sequence[str],
    operators: Operators = NO_OPERATORS,
    fusion: Fusion = "integers",
    constants: Mapping[str, np.ndarray] = NO_VALUES,
) -> Part:
    """The part of these nodes or renamed copies, in order. Raises GraphError."""
    if not outputs:
        return EMPTY
    model = written.model(pieces, outputs, constants)
    return as_part(_session(written, model, operators, fusion))


def _session(
    written: SerializedGraph, model: bytes, operators: Operators, fusion: Fusion
) -> FloatSession:
    if not written.is_mixed:
        return OrtSession(model, fusion=fusion)
    return float_session(Graph.from_bytes(model), operators, fusion)
