"""Rescale groups: channels rescaled between layers, without a change of the network's function.

A channel-wise positively homogeneous function, f(x / s) = f(x) / s for s > 0, lets a factor
through: ReLU, pools, a sum of tensors with equal factors, the product with a gate. If every maker
and every reader of a tensor is linear, each channel c may be divided by any s[c] > 0:

    maker   w[c, :] / s[c]    b[c] / s[c]        reader   w[:, c] * s[c]

Tensors with equal factors form a group. A self-gated activation, x * f(x), lets a factor through
with one more node (correction.self_gates), which only `migrate` spends.

A Clip(0, b) such as ReLU6 is not homogeneous, but passes s[c] <= 1 where no value exceeds b s[c]:
the divided channel ends at b, as a grid for these values does. Only `even_depthwise` asks for such
groups (`clipped`); their `limit` is the smallest b.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from npumake.engine.fusion import bounds, is_clamp
from npumake.graph import Graph, Node, Value, array, attribute, producer, shape
from npumake.kernels.affine import per_axis
from npumake.quant.correction.self_gates import CHANNEL_AXIS, SelfGate, insert_gain, self_gate
from npumake.quant.precision.linear_layers import LinearLayer, layer, set_bias, set_weight

POOLS = ("AveragePool", "GlobalAveragePool", "MaxPool")
MOVES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
NORM = "LayerNormalization"

Axes = Mapping[Value, int]
Factors = Mapping[str, Sequence[float]]  # s of each channel, by the group's name


@dataclass
class RescaleGroup:
    """Tensors whose channels are divided by the same factors, with their makers and readers."""

    axes: dict[Value, int]  # the channel axis of each tensor
    makers: dict[Node, LinearLayer] = field(default_factory=dict)
    readers: dict[Node, LinearLayer] = field(default_factory=dict)
    norms: list[Node] = field(default_factory=list)  # normalizations with gain and shift
    sums: set[Node] = field(default_factory=set)  # constants in them are divided too
    gates: dict[Node, SelfGate] = field(default_factory=dict)  # by the node of the product
    limit: float = math.inf  # the smallest upper bound of a Clip

    @property
    def name(self) -> str:
        """The name of its first tensor, which rescaling keeps."""
        return str(next(iter(self.axes)).name)

    @property
    def channels(self) -> int:
        value, axis = next(iter(self.axes.items()))
        return shape(value)[axis]


def find_rescale_groups(
    graph: Graph, gated: bool = False, clipped: bool = False
) -> list[RescaleGroup]:
    """Every group whose makers are layers and normalizations and whose readers are layers, in
    order; those with self-gated activations only if `gated`, those with a limit if `clipped`."""
    groups: list[RescaleGroup] = []
    visited: set[Value] = set()
    for node in graph.nodes():
        axis = _output_axis(node)
        if axis is None or node.outputs[0] in visited:
            continue
        group = RescaleGroup({node.outputs[0]: axis})
        is_whole = _grown(group) and bool(group.readers)
        if is_whole and (gated or not group.gates) and (clipped or group.limit == math.inf):
            groups.append(group)
        visited |= group.axes.keys()
    return groups


def rescaled(graph: Graph, factors: Factors) -> Graph:
    """A copy of a float graph that computes the same, with the named groups divided; the graph
    itself without factors. Values beyond the samples may be clipped where a group has a limit."""
    if not factors:
        return graph
    graph = graph.copy()
    for group in find_rescale_groups(graph, gated=True, clipped=True):
        if group.name in factors:
            rescale(graph, group, np.array(factors[group.name]))
    graph.drop_unused()
    return graph.with_shapes()


def rescale(graph: Graph, group: RescaleGroup, s: np.ndarray) -> None:
    """Divides the channels of a group by `s`, (channels,), in place."""
    for node in group.makers:
        maker = _again(node)
        set_weight(graph, maker, maker.kernel() / _rows(maker, s))
        if maker.has_bias:
            set_bias(graph, maker, maker.bias() / s)
    for node in group.readers:
        read = _again(node)
        set_weight(graph, read, read.kernel() * _columns(read, s))
    for gate in group.gates.values():
        insert_gain(graph, gate, s)
    for node in group.norms:
        _divide_constants(graph, node, range(1, len(node.inputs)), s)
    for node in sorted(group.sums, key=lambda node: str(node.name)):
        value = node.outputs[0]
        _divide_constants(graph, node, range(2), per_axis(s, len(shape(value)), group.axes[value]))


def _rows(maker: LinearLayer, s: np.ndarray) -> np.ndarray:
    groups, outputs, *_ = maker.kernel().shape
    return s.reshape(groups, outputs, 1, 1)


def _columns(read: LinearLayer, s: np.ndarray) -> np.ndarray:
    groups, _, inputs, _ = read.kernel().shape
    return s.reshape(groups, 1, inputs, 1)


def _again(node: Node) -> LinearLayer:
    """The layer with its current weight: two groups may meet in one layer."""
    linear = layer(node)
    assert linear is not None
    return linear


def _divide_constants(graph: Graph, node: Node, places: range, s: np.ndarray) -> None:
    for place in places:
        operand = node.inputs[place]
        values = array(operand)
        if operand is not None and values is not None:
            divided = (values / s).astype(values.dtype)
            graph.set_inputs(node, {place: graph.constant(str(operand.name), divided)})


def _output_axis(node: Node) -> int | None:
    """The channel axis of the output of a layer, or of a normalization over the last axis."""
    if (linear := layer(node)) is not None:
        return linear.axis(linear.y)
    rank = len(shape(node.outputs[0])) if node.op_type == NORM else 0
    if not rank or attribute(node, "axis", -1) not in (-1, rank - 1):
        return None
    return rank - 1 if all(array(value) is not None for value in node.inputs[1:]) else None


def _grown(group: RescaleGroup) -> bool:
    """Whether the group, extended to all tensors with equal factors, has only linear neighbors."""
    visited: set[Value] = set()
    while left := [value for value in group.axes if value not in visited]:
        value = left[0]
        visited.add(value)
        maker = producer(value)
        if maker is None or value.is_graph_output() or not _takes_maker(group, maker, value):
            return False
        if not all(_takes_reader(group, use.node, value) for use in value.uses()):
            return False
    return True


def _takes_maker(group: RescaleGroup, node: Node, value: Value) -> bool:
    if _output_axis(node) is None:
        return _lets_through(group, node, value)
    if (linear := layer(node)) is not None:
        group.makers[node] = linear
    else:
        group.norms.append(node)
    return _output_axis(node) == group.axes[value]


def _takes_reader(group: RescaleGroup, node: Node, value: Value) -> bool:
    read = layer(node)
    if read is None:
        return _lets_through(group, node, value)
    group.readers[node] = read
    return read.x is value and read.axis(value) == group.axes[value]


def _lets_through(group: RescaleGroup, node: Node, value: Value) -> bool:
    """Whether a non-linear node passes the factor; its inputs and outputs join the group."""
    gate = self_gate(node)
    if gate is not None and group.axes[value] == CHANNEL_AXIS:
        group.gates[gate.product] = gate
        joined: Axes = {gate.x: CHANNEL_AXIS, gate.y: CHANNEL_AXIS}
    else:
        joined = _joined(node, value, group.axes[value])
    if node.op_type in ("Add", "Sub"):
        group.sums.add(node)
    if is_clamp(node) and (high := bounds(node).high) is not None:
        group.limit = min(group.limit, high)
    agree = all(group.axes.get(other, axis) == axis for other, axis in joined.items())
    group.axes |= joined
    return bool(joined) and agree


def _joined(node: Node, value: Value, axis: int) -> Axes:
    """The tensors of a node that are divided like `value`; empty if it passes no factor."""
    x, y = node.inputs[0], node.outputs[0]
    if node.domain or x is None or len(node.outputs) != 1:
        return {}
    if node.op_type in POOLS and axis == 1:
        return {x: axis, y: axis}
    if node.op_type == "LeakyRelu" or (is_clamp(node) and bounds(node).low == 0.0):
        return {x: axis, y: axis}
    if node.op_type in MOVES:
        return _moved(x, y, value, axis)
    if node.op_type in ("Add", "Sub", "Mul"):
        read = [v for v in node.inputs if v is not None and array(v) is None]
        like = [v for v in read if shape(v) == shape(y)]
        is_gated = node.op_type == "Mul" and len(like) == 1  # the other is a gate, or a constant
        is_sum = node.op_type != "Mul" and len(like) == len(read)
        if value in (*like, y) and (is_gated or is_sum):
            return {v: axis for v in (*like, y)}
    return {}


def _moved(x: Value, y: Value, value: Value, axis: int) -> Axes:
    """Only axes of size 1 come or go, so the channels stay one axis."""
    sizes = {v: [at for at, size in enumerate(shape(v)) if size != 1] for v in (x, y)}
    extents = [[shape(v)[at] for at in sizes[v]] for v in (x, y)]
    if extents[0] != extents[1] or axis not in sizes[value]:
        return {}
    place = sizes[value].index(axis)
    return {v: sizes[v][place] for v in (x, y)}
