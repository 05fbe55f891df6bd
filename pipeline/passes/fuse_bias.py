"""A constant added behind a convolution or matrix product becomes its bias.

Conv(x, W) + c  ->  Conv(x, W, c)        c has one value per output channel
MatMul(x, W) + c  ->  Gemm(x, W, c)      x has rank 2, c one value per column
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.graph import Graph, Node, array, only_consumer


class _Biased(NamedTuple):
    linear: Node
    add: Node
    bias: np.ndarray


def fuse_bias(graph: Graph) -> int:
    found = [pair for node in graph.nodes("Conv", "MatMul") if (pair := _biased(node))]
    for linear, add, bias in found:
        made = graph.constant(f"{linear.name}_bias", bias)
        if linear.op_type == "MatMul":
            graph.set_type(linear, "Gemm")
        graph.set_inputs(linear, {2: made})
        graph.replace_uses(add.outputs[0], linear.outputs[0])
        graph.remove(add)
    return len(found)


def _biased(linear: Node) -> _Biased | None:
    add = only_consumer(linear.outputs[0])
    if add is None or add.op_type != "Add" or add.domain:
        return None
    if len(linear.inputs) > 2 and linear.inputs[2] is not None:
        return None
    if linear.op_type == "MatMul" and not _is_plain_product(linear):
        return None
    other = add.inputs[1] if add.inputs[0] is linear.outputs[0] else add.inputs[0]
    bias = _per_channel(array(other), linear)
    return None if bias is None else _Biased(linear, add, bias)


def _is_plain_product(matmul: Node) -> bool:
    left, right = matmul.inputs[0], array(matmul.inputs[1])
    if left is None or left.shape is None or right is None:
        return False
    return len(left.shape) == right.ndim == 2


def _per_channel(added: np.ndarray | None, linear: Node) -> np.ndarray | None:
    """The added constant with one value per output channel, when that is what it is."""
    made = linear.outputs[0].shape
    if added is None or made is None or added.ndim > len(made):
        return None
    channels = made[1]  # of a matrix too: its columns
    if not isinstance(channels, int):
        return None
    spread = [channels if axis == 1 else 1 for axis in range(len(made))]
    aligned = added.reshape((1,) * (len(made) - added.ndim) + added.shape)
    if any(size not in (1, whole) for size, whole in zip(aligned.shape, spread, strict=True)):
        return None
    return np.broadcast_to(aligned, spread).reshape(-1).copy()
