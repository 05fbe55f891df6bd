"""Fuses the nodes of a LayerNormalization over the last axis into one.

d = x - mean(x)      y = d / sqrt(mean(d * d) + eps) * gamma + beta

d * d may be d ** 2. Without gamma and beta the nodes are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, only_consumer, producer

OPSET = 17  # the first that has it


class _Norm(NamedTuple):
    x: Value
    epsilon: float
    nodes: tuple[Node, ...]  # up to the Div, which is the last


def fuse_layer_norm(graph: Graph) -> int:
    if graph.opset < OPSET:
        return 0
    return sum(_fused(graph, node) for node in graph.nodes("Div"))


def _fused(graph: Graph, div: Node) -> bool:
    norm = _norm(div)
    scaled = norm and _constant_reader(div, "Mul")
    moved = scaled and _constant_reader(scaled.node, "Add")
    if norm is None or scaled is None or moved is None or norm.x.shape is None:
        return False
    last = norm.x.shape[-1]
    if scaled.constant.shape != [last] or moved.constant.shape != [last]:
        return False
    graph.become(
        moved.node,
        "LayerNormalization",
        [norm.x, scaled.constant, moved.constant],
        axis=-1,
        epsilon=norm.epsilon,
    )
    graph.absorb(moved.node, *norm.nodes, scaled.node)
    return True


class _Reader(NamedTuple):
    node: Node
    constant: Value


def _constant_reader(node: Node, op_type: str) -> _Reader | None:
    """The only reader, of that type, and its constant input."""
    reader = only_consumer(node.outputs[0])
    if reader is None or reader.op_type != op_type or reader.domain:
        return None
    constants = [value for value in reader.inputs if value is not None and array(value) is not None]
    return _Reader(reader, constants[0]) if len(constants) == 1 else None


def _norm(div: Node) -> _Norm | None:
    """d / sqrt(mean(d * d) + eps) if the Div computes it and no other node reads inside."""
    centered, root = _maker(div, 0, "Sub"), _maker(div, 1, "Sqrt")
    shifted = root and _maker(root, 0, "Add")
    variance = shifted and _maker(shifted, 0, "ReduceMean")
    square = variance and _maker(variance, 0, "Mul", "Pow")
    mean = centered and _maker(centered, 1, "ReduceMean")
    if not (centered and root and shifted and variance and square and mean):
        return None
    epsilon, x = array(shifted.inputs[1]), mean.inputs[0]
    squares = square.op_type == "Mul" or _is(array(square.inputs[1]), 2.0)
    inside = (centered.inputs[0], square.inputs[0], square.inputs[1])
    d = centered.outputs[0]
    expected = (x, d, d if square.op_type == "Mul" else square.inputs[1])
    if x is None or epsilon is None or epsilon.size != 1 or not squares or inside != expected:
        return None
    if not (_along_last(mean) and _along_last(variance)):
        return None
    nodes = (mean, centered, square, variance, shifted, root, div)
    return _Norm(x, float(epsilon.reshape(-1)[0]), nodes)


def _maker(node: Node, index: int, *op_types: str) -> Node | None:
    x = node.inputs[index]
    maker = None if x is None else producer(x)
    return maker if maker is not None and maker.op_type in op_types and not maker.domain else None


def _is(values: np.ndarray | None, number: float) -> bool:
    return values is not None and bool((values == number).all())


def _along_last(mean: Node) -> bool:
    """Whether it averages over only the last axis, with keepdims."""
    listed = array(mean.inputs[1]) if len(mean.inputs) > 1 else attribute(mean, "axes")
    out_shape = mean.outputs[0].shape
    if listed is None or out_shape is None or not attribute(mean, "keepdims", 1):
        return False
    return [int(axis) % len(out_shape) for axis in listed] == [len(out_shape) - 1]
