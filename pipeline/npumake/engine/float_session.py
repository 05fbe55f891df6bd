"""Runs a float graph in onnxruntime, alternating with Python for custom operators.

onnxruntime cannot call Python operators, so a graph with custom nodes is cut along them. Nodes that
wait for the same custom nodes form one onnxruntime session. A graph without custom nodes is one
session, up to MAX_NODES: onnxruntime opens a session in more than linear time, where every tensor
is an output in 8 times the time for 4 times the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from npumake.custom.compute import compute
from npumake.custom.operators import NO_OPERATORS, Operators, require
from npumake.engine.ort import Feeds, Fusion, OrtSession
from npumake.engine.partial.part import Part, Values, as_part, run_in_order
from npumake.engine.port import port
from npumake.errors import GraphError
from npumake.graph import (
    Graph,
    Node,
    Value,
    array,
    dtype,
    inside,
    is_foreign,
    part,
    producer,
    reads,
    serialized_part,
    shape,
)

MAX_NODES = 4096  # of one onnxruntime session


def float_session(
    graph: Graph, operators: Operators = NO_OPERATORS, fusion: Fusion = "integers"
) -> FloatSession:
    """The graph ready to run. Raises GraphError for an operator without an implementation."""
    if is_plain(graph) and len(graph.model.graph) <= MAX_NODES:
        return OrtSession(graph.to_bytes(), fusion=fusion)
    require(graph, operators)
    return MixedSession(graph, operators, fusion)


def part_session(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[Value], operators: Operators
) -> FloatSession:
    """These nodes of the graph, in order, ready to run. Raises GraphError as `float_session`."""
    if len(nodes) <= MAX_NODES and not any(map(_is_foreign_within, nodes)):
        return OrtSession(serialized_part(graph, nodes, outputs))
    return float_session(part(graph, nodes, outputs), operators)


def is_plain(graph: Graph) -> bool:
    return not any(is_foreign(node) for node in graph.model.graph.all_nodes())


def _is_foreign_within(node: Node) -> bool:
    return is_foreign(node) or any(is_foreign(inner) for _, inner in inside(node))


class MixedSession:
    """A graph with custom nodes, or many nodes, with the interface of an onnxruntime session."""

    def __init__(self, graph: Graph, operators: Operators, fusion: Fusion = "integers") -> None:
        self._input_types = {str(v.name): (dtype(v), shape(v)) for v in graph.inputs}
        self.input_names = tuple(self._input_types)
        self.output_names = tuple(str(value.name) for value in graph.outputs)
        self.inputs, self.outputs = (
            tuple(port(str(v.name), shape(v), str(dtype(v))) for v in values)
            for values in (graph.inputs, graph.outputs)
        )
        self._constants = {
            str(value.name): constant
            for value in graph.values().values()
            if (constant := array(value)) is not None
        }
        self._turns = [
            turn
            for _, nodes in groupby(_in_turns(graph), key=lambda item: item[0])
            for turn in _turns(graph, [node for _, node in nodes], operators, fusion)
        ]

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """Returns the named outputs (all when None) for one set of feeds.

        Raises GraphError for feeds of another shape or type, StageError if a custom operator
        fails.
        """
        self._refuse_misfits(feeds)
        values = run_in_order(self._turns, {**self._constants, **feeds})
        return [values[name] for name in names or self.output_names]

    def _refuse_misfits(self, feeds: Feeds) -> None:
        types = {name: (str(array.dtype), array.shape) for name, array in feeds.items()}
        if types != self._input_types:
            raise GraphError(
                f"the model is fed {_described(types)}, not {_described(self._input_types)}"
            )


def _described(arrays: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name}: {kind}{list(size)}" for name, (kind, size) in arrays.items())


def _in_turns(graph: Graph) -> list[tuple[tuple[int, bool], Node]]:
    """The nodes in execution order, each with its turn: the number of custom nodes it waits for in
    a row, and whether it is custom itself."""
    behind: dict[Node, int] = {}
    for node in graph.nodes():
        makers = [maker for value in reads(node) if (maker := producer(value)) is not None]
        behind[node] = max((behind[maker] + is_foreign(maker) for maker in makers), default=0)
    ordered = [((behind[node], is_foreign(node)), node) for node in graph.nodes()]
    return sorted(
        ordered, key=lambda item: item[0]
    )  # stable: keeps the graph's order within a turn


def _turns(graph: Graph, nodes: list[Node], operators: Operators, fusion: Fusion) -> list[Part]:
    if is_foreign(nodes[0]):
        return [_python(node, operators) for node in nodes]
    starts = range(0, len(nodes), MAX_NODES)
    return [_onnxruntime(graph, nodes[start : start + MAX_NODES], fusion) for start in starts]


def _python(node: Node, operators: Operators) -> Part:
    read = [None if value is None else str(value.name) for value in node.inputs]
    outputs = tuple(str(value.name) for value in node.outputs)
    operator = operators.by_type[node.op_type]

    def run(values: Values) -> Values:
        arrays = [None if name is None else values[name] for name in read]
        return dict(zip(outputs, compute(operator, node, arrays), strict=True))

    return Part(tuple(name for name in read if name is not None), outputs, run)


def _onnxruntime(graph: Graph, nodes: list[Node], fusion: Fusion) -> Part:
    own = set(nodes)
    outputs = [v for node in nodes for v in node.outputs if _is_read_elsewhere(v, own)]
    return as_part(OrtSession(serialized_part(graph, nodes, outputs), fusion=fusion))


def _is_read_elsewhere(value: Value, nodes: set[Node]) -> bool:
    return value.is_graph_output() or any(use.node not in nodes for use in value.uses())


FloatSession = OrtSession | MixedSession
