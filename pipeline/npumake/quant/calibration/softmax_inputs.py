"""Softmax inputs: a mask may reach the lowest float32, or -infinity.

    scores + mask -> Softmax        Where(mask, scores, -1e9) -> Softmax

Only the distance to the largest value of a row counts, so the largest value of each row is
observed:

    peak = the least row maximum, over all rows

Rows whose maximum is below -MAX_PEAK_DISTANCE are masked as a whole and are skipped. Tensors that
only lead to such a Softmax are clipped to MAX_WATCHED_VALUE when observed: -infinity has no bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, attribute, declare, dtype, is_float, producer
from npumake.graph import shape as shape_of
from npumake.quant.precision.placement import (
    activations,
    is_data_movement,
    observed_tensors,
    source_tensor,
)

MAX_PEAK_DISTANCE = 1000.0
MAX_WATCHED_VALUE = 2.0**40
SCORING = ("LogSoftmax", "Softmax")
JOINING = ("Add", "Concat", "Sub", "Where")
SCALING = ("Clip", "Div", "Max", "Min", "Mul")
REDUCE_AXES_OPSET = 18  # from here on the axes of ReduceMax are an input


class ProbedGraph(NamedTuple):
    """A copy of a graph with probes: by tensor name, the clipped tensor to observe and the peak
    probe."""

    graph: Graph
    bounded: Mapping[str, str]
    peaks: Mapping[str, str]


def with_peak_probes(graph: Graph) -> ProbedGraph:
    """The graph with its probes; the graph itself if no Softmax reads a mask."""
    nodes = masked_softmaxes(graph)
    if not nodes:
        return ProbedGraph(graph, {}, {})
    graph = graph.copy()
    names = set(observed_tensors(graph))
    inner = values_leading_to(graph, SCORING)
    bounded = {}
    for value in graph.values().values():
        name = str(value.name)
        if value in inner and name in names and dtype(value) == "float32":
            bounded[name] = _bounded(graph, value)
    peaks = {}
    for node in masked_softmaxes(graph):
        x = node.inputs[0]
        if x is not None and str(source_tensor(x).name) in names and dtype(x) == "float32":
            peaks[str(source_tensor(x).name)] = _peak(graph, node, x)
    return ProbedGraph(graph, bounded, peaks)


def masked_softmaxes(graph: Graph) -> list[Node]:
    """The Softmax nodes that may read a mask."""
    return [node for node in graph.nodes("Softmax") if _is_joined(node.inputs[0])]


def _is_joined(value: Value | None) -> bool:
    """Whether the value is a model input, or combines several tensors."""
    visited: set[Value] = set()
    read = [] if value is None else [source_tensor(value)]
    while read:
        value = source_tensor(read.pop())
        maker = producer(value)
        if maker is None or maker.op_type in JOINING:
            return True
        if maker.op_type in SCALING and value not in visited:
            visited.add(value)
            read += activations(maker)
    return False


def values_leading_to(graph: Graph, ends: tuple[str, ...]) -> set[Value]:
    """The float tensors whose readers all are operators of `ends`, or only lead to them."""
    inner: set[Value] = set()
    for node in reversed(graph.nodes()):
        for value in node.outputs:
            if _leads(value, ends, inner):
                inner.add(value)
    return inner | {value for value in graph.inputs if _leads(value, ends, inner)}


def _leads(value: Value, ends: tuple[str, ...], inner: set[Value]) -> bool:
    uses = [use.node for use in value.uses()]
    if not uses or value.is_graph_output() or not is_float(value):
        return False
    return all(
        node.op_type in ends
        or (
            (node.op_type in JOINING + SCALING or is_data_movement(node))
            and node.outputs[0] in inner
        )
        for node in uses
    )


def _bounded(graph: Graph, value: Value) -> str:
    limits = [
        graph.constant("bound", np.array(sign * MAX_WATCHED_VALUE, np.float32)) for sign in (-1, 1)
    ]
    clipped = graph.insert("Clip", [value, *limits], f"{value.name}.bounded", producer(value))
    declare(clipped, shape_of(value), limits[0])
    return str(clipped.name)


def _peak(graph: Graph, node: Node, x: Value) -> str:
    axis = attribute(node, "axis", -1) % len(shape_of(x))
    sizes = [1 if at == axis else size for at, size in enumerate(shape_of(x))]
    is_input = graph.opset >= REDUCE_AXES_OPSET
    axes = [graph.constant("axes", np.array([axis]))] if is_input else []
    far = graph.constant("far", np.array(-MAX_PEAK_DISTANCE, np.float32))
    no_limit = graph.constant("none", np.array(MAX_WATCHED_VALUE, np.float32))
    largest = graph.insert(
        "ReduceMax", [x, *axes], f"{x.name}.largest", producer(x), axes=None if is_input else [axis]
    )
    dark = graph.insert("Less", [largest, far], f"{x.name}.dark", producer(largest))
    peak = graph.insert("Where", [dark, no_limit, largest], f"{x.name}.peak", producer(dark))
    declare(peak, sizes, no_limit)
    return str(peak.name)
