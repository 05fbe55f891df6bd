"""Placement: which nodes run on the chip, and from which tensor each tensor takes its range.

An active node (one that computes) runs on the chip if it has an integer kernel, the target has the
operator, and the node is within the documented limits. A data movement follows its producer: next
to a float border it stays on the CPU: quantization would only add cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from npumake.engine.fusion import absorbed
from npumake.engine.quantized_node import is_constant
from npumake.engine.rules import PLACES, has_kernel
from npumake.engine.tflite_rules import computes
from npumake.graph import Graph, Node, Value, is_float, producer
from npumake.targets import parts
from npumake.targets.limits import beyond
from npumake.targets.target import Target

MOVE_OPERATORS = frozenset(
    {
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Pad",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
# The output has values of the input, and zeros, so it takes the input's range and grid.
SAME_GRID_OPERATORS = frozenset(
    {*MOVE_OPERATORS, "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMin", "Resize"} - {"Concat"}
)


def on_chip(
    graph: Graph,
    target: Target,
    off: Collection[Node] = (),
    requested: Collection[Node] = (),
) -> set[Node]:
    """The nodes that run in integers; a clamp goes with the node that absorbs it.

    Nodes in `off` stay off the chip; those in `requested` run there wherever it can.
    """
    chosen: set[Node] = set()
    clamps: set[Node] = set()
    for node in graph.nodes():
        if node in clamps:
            continue
        clamp = absorbed(node)
        together = {node} if clamp is None else {node, clamp}
        clamps |= together - {node}
        is_requested = not together.isdisjoint(requested)
        if not together.isdisjoint(off) or not _runs(node, target, is_requested):
            continue
        if is_requested or not _is_left_behind(node, chosen):
            chosen |= together
    return chosen


def _is_left_behind(node: Node, chosen: set[Node]) -> bool:
    """Whether no producer is on the chip and the node computes nothing worth a grid."""
    makers = (producer(value) for value in activations(node))
    return node.op_type in MOVE_OPERATORS | PLACES and not any(maker in chosen for maker in makers)


def _runs(node: Node, target: Target, is_requested: bool) -> bool:
    if not runs(node, target, is_requested) or not computes(node, target.rounding):
        return False
    floats = node.op_type in PLACES or all(is_float(value) for value in node.outputs)
    return bool(activations(node)) and floats and all(is_float(value) for value in node.inputs[:1])


def runs(node: Node, target: Target, is_requested: bool) -> bool:
    """Whether the unit runs the node by itself, or when requested. An unknown operator counts as
    running."""
    runs_operators = parts.runs(node, target, is_requested)
    return (runs_operators or makes_matrix(node, target)) and not beyond(node, target)


def makes_matrix(node: Node, target: Target) -> bool:
    """Whether the node is a view of an image for a Gemm that the unit computes as a Conv."""
    if not target.gemm_as_conv or node.op_type not in ("Flatten", "Reshape"):
        return False
    output = node.outputs[0]
    readers = [use.node.op_type for use in output.uses()]
    return readers != [] and set(readers) == {"Gemm"} and not output.is_graph_output()


def activations(node: Node) -> tuple[Value, ...]:
    """The float inputs of the node that are not constant."""
    return tuple(
        value
        for value in node.inputs
        if value is not None and is_float(value) and not is_constant(value)
    )


def source_tensor(value: Value) -> Value:
    """The tensor whose values `value` holds: back through every data movement."""
    while (moved := _moved(value)) is not None:
        value = moved
    return value


def _moved(value: Value) -> Value | None:
    """The tensor whose values a data movement gives to `value`."""
    maker = producer(value)
    return maker.inputs[0] if maker is not None and is_data_movement(maker) else None


def is_data_movement(node: Node) -> bool:
    """Whether the node only moves values.

    An operator of the same name without a kernel may compute: a cubic Resize overshoots.
    """
    return node.op_type in SAME_GRID_OPERATORS and has_kernel(node)


def concat_parts(value: Value) -> frozenset[Value]:
    """The tensors that `value` is joined from, back through every Concat and data movement."""
    return frozenset(part for part in _joined([value]) if not _is_joined(part))


def output_tensors(graph: Graph) -> frozenset[str]:
    """The observed tensors whose values the model's outputs hold, back through every Concat."""
    return frozenset(str(value.name) for value in _joined(graph.outputs))


def _joined(values: Iterable[Value]) -> set[Value]:
    """The sources of the values, and of what each Concat among them joins. Two ways may lead to one
    tensor, and 2**n through n Concats of both halves of a tensor: each is gone once."""
    visited: set[Value] = set()
    read = [*values]
    while read:
        value = source_tensor(read.pop())
        maker = producer(value)
        if maker is not None and value not in visited and _is_joined(value):
            read += activations(maker)
        visited.add(value)
    return visited


def _is_joined(value: Value) -> bool:
    maker = producer(value)
    return maker is not None and maker.op_type == "Concat"


def observed_tensors(graph: Graph) -> tuple[str, ...]:
    """Every tensor whose range some target may need, in graph order.

    Left out: a node's output before the clamp that it absorbs, moved values and constants.
    """
    hidden = {node.outputs[0] for node in graph.nodes() if absorbed(node) is not None}
    outputs = [value for node in graph.nodes() for value in node.outputs]
    floats = [v for v in (*graph.inputs, *outputs) if is_float(v) and not is_constant(v)]
    return tuple(str(v.name) for v in floats if v not in hidden and _moved(v) is None)


def subgraphs(graph: Graph, chip: set[Node]) -> dict[Node, int]:
    """The subgraph number of each chip node, counted from 0.

    A chip node behind a CPU node that reads from subgraph n is in subgraph n + 1 or later: the chip
    must return its results first.
    """
    last_subgraphs: dict[Node, int] = {}  # the last subgraph that must run first, -1 for none
    for node in graph.nodes():
        makers = [maker for value in activations(node) if (maker := producer(value)) is not None]
        last_subgraphs[node] = max(
            (_last_subgraph(node, maker, chip, last_subgraphs) for maker in makers), default=-1
        )
        if node in chip and last_subgraphs[node] < 0:
            last_subgraphs[node] = 0
    return {node: last_subgraphs[node] for node in graph.nodes() if node in chip}


def _last_subgraph(
    node: Node, maker: Node, chip: set[Node], last_subgraphs: dict[Node, int]
) -> int:
    crosses_to_the_chip = node in chip and maker not in chip
    return last_subgraphs[maker] + crosses_to_the_chip
