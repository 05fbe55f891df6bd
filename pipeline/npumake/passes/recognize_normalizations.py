"""Recognizes nodes that together normalize the rows of a tensor as one ONNX operator does.

    Softmax             exp(x) / sum exp(x)                                 along any axis
    LayerNormalization  (x - mean) / sqrt(variance + eps) * gamma + beta    over the last axis

Frameworks write both in many ways: the maximum is subtracted or not, the variance is mean(d * d) of
d = x - mean or mean(x * x) - mean * mean, gamma is multiplied before or after the root. All are
functions of one row, so they are compared by value, in float64, on a few rows of different sizes.
gamma and beta are solved for by least squares; in float32 they are the bits that the nodes have.

Without gamma the nodes are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, is_given, producer
from npumake.passes.rows import REDUCTIONS, RowRegion, dims_of, region_of

OPSETS = {"Softmax": 13, "LayerNormalization": 17}  # the first with these meanings
MAX_EPSILON = 0.1
RTOL, ATOL = 1e-6, 1e-7


def recognize_normalizations(graph: Graph) -> int:
    order = {node: index for index, node in enumerate(graph.nodes())}
    covered: set[Node] = set()
    replaced = 0
    for node in graph.nodes(*REDUCTIONS):
        for x in () if node in covered else _normalized(node):
            region = region_of(x, node, order)
            if region and (nodes := _replaced(graph, region)):
                covered |= nodes
                replaced += 1
                break
    return replaced


def _normalized(reduction: Node) -> Iterator[Value]:
    """The tensors that a normalization with this reduction may read."""
    read = reduction.inputs[0]
    if read is not None and not is_given(read):
        yield read
        maker = producer(read)
        if maker is not None and maker.op_type == "Exp" and maker.inputs[0] is not None:
            yield maker.inputs[0]


def _replaced(graph: Graph, region: RowRegion) -> set[Node]:
    """Replaces the most nodes that are one operator. Returns them, or none."""
    for top in reversed(region.nodes):
        nodes = _closed(top, region)
        operator = _operator(graph, region, top, nodes) if nodes else None
        if operator is not None:
            graph.become(top, operator.op_type, operator.inputs, **operator.attributes)
            graph.absorb(top, *(node for node in nodes if node is not top))
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


class _Operator(NamedTuple):
    op_type: str
    inputs: list[Value]
    attributes: dict[str, Any]


def _operator(graph: Graph, region: RowRegion, top: Node, nodes: list[Node]) -> _Operator | None:
    """The operator that the nodes compute."""
    y, x = region.values[top.outputs[0]], region.values[region.x]
    if y.shape != x.shape:
        return None
    if graph.opset >= OPSETS["Softmax"] and _agree(y, _softmax(x)):
        return _Operator("Softmax", [region.x], {"axis": region.axis})
    is_last = region.axis == len(dims_of(region.x)) - 1
    if graph.opset < OPSETS["LayerNormalization"] or not is_last:
        return None
    constants = {v: c for node in nodes for v in node.inputs if v and (c := array(v)) is not None}
    if not any(constant.size == x.shape[1] for constant in constants.values()):
        return None
    for epsilon in _epsilons(constants.values()):
        if rows := _scale_and_bias(x, y, epsilon):
            inputs = [_as_value(graph, top, key, row, constants) for key, row in rows.items()]
            return _Operator(
                "LayerNormalization", [region.x, *inputs], {"axis": -1, "epsilon": epsilon}
            )
    return None


def _epsilons(constants: Iterable[np.ndarray]) -> list[float]:
    numbers = {float(constant.reshape(-1)[0]) for constant in constants if constant.size == 1}
    return sorted(number for number in numbers if 0.0 < number <= MAX_EPSILON)


def _scale_and_bias(x: np.ndarray, y: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """gamma and beta (size of the axis) if y is that LayerNormalization of x; empty otherwise."""
    apart = x - x.mean(1, keepdims=True)
    normal = apart / np.sqrt((apart * apart).mean(1, keepdims=True) + epsilon)
    spread = normal - normal.mean(0)
    gamma = ((spread * y).sum(0) / (spread * spread).sum(0)).astype(np.float32)
    beta = (y - gamma * normal).mean(0)
    beta = np.where(np.abs(beta) > ATOL, beta, 0.0).astype(np.float32)
    return {"scale": gamma, "bias": beta} if _agree(y, gamma * normal + beta) else {}


def _as_value(
    graph: Graph, top: Node, name: str, numbers: np.ndarray, constants: Mapping[Value, np.ndarray]
) -> Value:
    """The constant that holds these numbers, or a new one."""
    own = (value for value, constant in constants.items() if np.array_equal(constant, numbers))
    return next(own, None) or graph.constant(f"{top.name}_{name}", numbers)


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    result: np.ndarray = powers / powers.sum(1, keepdims=True)
    return result


def _agree(values: np.ndarray, expected: np.ndarray) -> bool:
    scale = RTOL * np.abs(expected) + ATOL * max(1.0, float(np.abs(expected).max()))
    return bool((np.abs(values - expected) <= scale).all())
