"""Recognizes nodes that together compute a LayerNormalization over the last axis.

    y = (x - mean) / sqrt(variance + eps) * gamma + beta

Frameworks write it in many ways: the variance is mean(d * d) of d = x - mean, or the mean of x * x
less mean * mean; gamma is multiplied before or after the root. All are functions of one row, so
they are compared by value, in float64, on a few rows of different sizes. gamma and beta are solved
for by least squares; in float32 they are the bits that the nodes have.

Without gamma the nodes are left alone. So is a Softmax in parts: the vendors' tools run its parts,
and place them elsewhere than a Softmax.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, producer
from npumake.passes.parts import fuse
from npumake.passes.rows import REDUCTIONS, RowRegion, region_of

OPSET = 17  # the first that has it
MAX_EPSILON = 0.1
RTOL, ATOL = 1e-6, 1e-7


def recognize_layer_norms(graph: Graph) -> int:
    if graph.opset < OPSET:
        return 0
    order = {node: index for index, node in enumerate(graph.nodes())}
    covered: set[Node] = set()
    replaced = 0
    for node in graph.nodes(*REDUCTIONS):
        region = None if node in covered else region_of(node, order)
        if region and (nodes := _replaced(graph, region)):
            covered |= nodes
            replaced += 1
    return replaced


def _replaced(graph: Graph, region: RowRegion) -> set[Node]:
    """Replaces the most nodes that are one normalization. Returns them, or none."""
    for top in reversed(region.nodes):
        nodes = _closed(top, region)
        constants = {v: c for n in nodes for v in n.inputs if v and (c := array(v)) is not None}
        norm = _norm(region, top, [*constants.values()]) if nodes else None
        if norm is not None:
            scale = _value_of(graph, f"{top.name}_scale", norm.scale, constants)
            bias = _value_of(graph, f"{top.name}_bias", norm.bias, constants)
            inputs = [region.x, scale, bias]
            fuse(graph, nodes, "LayerNormalization", inputs, axis=-1, epsilon=norm.epsilon)
            return set(nodes)
    return set()


def _closed(top: Node, region: RowRegion) -> list[Node]:
    """The nodes that `top` is computed with, itself included. None if another node reads inside."""
    inside, queue = {top}, [top]
    while queue:
        read = (value for value in queue.pop().inputs if value is not None)
        makers = {producer(value) for value in read if value in region.values}
        fresh = {maker for maker in makers if maker is not None and maker in region.nodes} - inside
        inside |= fresh
        queue += fresh
    inner = [node.outputs[0] for node in inside if node is not top]
    read_inside = all(use.node in inside for value in inner for use in value.uses())
    is_closed = read_inside and not any(value.is_graph_output() for value in inner)
    return [node for node in region.nodes if node in inside] if is_closed else []


class _Norm(NamedTuple):
    scale: np.ndarray
    bias: np.ndarray
    epsilon: float


def _norm(region: RowRegion, top: Node, constants: Sequence[np.ndarray]) -> _Norm | None:
    """The normalization that ends in `top`; `constants` are those of its nodes."""
    y, x = region.values[top.outputs[0]], region.values[region.x]
    if y.shape != x.shape or not any(constant.size == x.shape[1] for constant in constants):
        return None
    norms = (_fitted(x, y, epsilon) for epsilon in _epsilons(constants))
    return next((norm for norm in norms if norm is not None), None)


def _epsilons(constants: Iterable[np.ndarray]) -> list[float]:
    numbers = {float(constant.reshape(-1)[0]) for constant in constants if constant.size == 1}
    return sorted(number for number in numbers if 0.0 < number <= MAX_EPSILON)


def _fitted(x: np.ndarray, y: np.ndarray, epsilon: float) -> _Norm | None:
    """gamma and beta (size of a row) if y is that LayerNormalization of x."""
    apart = x - x.mean(1, keepdims=True)
    normal = apart / np.sqrt((apart * apart).mean(1, keepdims=True) + epsilon)
    spread = normal - normal.mean(0)
    gamma = ((spread * y).sum(0) / (spread * spread).sum(0)).astype(np.float32)
    beta = (y - gamma * normal).mean(0)
    beta = np.where(np.abs(beta) > ATOL, beta, 0.0).astype(np.float32)
    expected = gamma * normal + beta
    limit = RTOL * np.abs(expected) + ATOL * max(1.0, float(np.abs(expected).max()))
    return _Norm(gamma, beta, epsilon) if (np.abs(y - expected) <= limit).all() else None


def _value_of(
    graph: Graph, name: str, numbers: np.ndarray, constants: Mapping[Value, np.ndarray]
) -> Value:
    """The constant that holds these numbers, or a new one."""
    own = (value for value, constant in constants.items() if np.array_equal(constant, numbers))
    return next(own, None) or graph.constant(name, numbers)
