"""Fuses a per-channel gain and shift into the weight and bias of the linear node before it.

gain * (W x + b) + shift is linear again:      W' = gain * W      b' = gain * b + shift

The gain is per output channel, so a grouped Conv needs no special case. The weight of a
ConvTranspose is (C, O / group, *kernel), with output channels counted per group. A MatMul of
matrices becomes a Gemm, which has a bias. The fused readers are those of npumake.passes.affine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, array, attribute, only_consumer
from npumake.passes.affine import Affine, affine

LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class _Pair(NamedTuple):
    linear: Node
    reader: Affine
    weight: np.ndarray
    bias: np.ndarray


def fuse_affine(graph: Graph) -> int:
    fused = 0
    for node in graph.nodes(*LINEAR):
        while pair := _pair(node):  # normalizations may be chained
            _fuse(graph, pair)
            fused += 1
    return fused


def _pair(linear: Node) -> _Pair | None:
    follower = only_consumer(linear.outputs[0])
    reader = None if follower is None else affine(follower)
    weight = array(linear.inputs[1])
    if reader is None or weight is None or not _is_plain(linear):
        return None
    bias = _bias(linear, reader.gain.size)
    if bias is None:
        return None
    with np.errstate(over="ignore"):
        scaled = _scaled(linear, weight, reader.gain).astype(weight.dtype)
        moved = (reader.gain * bias + reader.shift).astype(weight.dtype)
    if not (np.isfinite(scaled).all() and np.isfinite(moved).all()):
        return None  # too large for half precision
    return _Pair(linear, reader, scaled, moved)


def _is_plain(linear: Node) -> bool:
    """A Gemm without alpha and beta, or a MatMul of matrices."""
    if linear.op_type == "MatMul":
        ranks = [len(value.shape) for value in linear.inputs if value and value.shape is not None]
        return ranks == [2, 2]
    return attribute(linear, "alpha", 1.0) == 1.0 and attribute(linear, "beta", 1.0) == 1.0


def _bias(linear: Node, channels: int) -> np.ndarray | None:
    """The bias, zeros without one; None if it is computed or not per channel."""
    bias = linear.inputs[2] if len(linear.inputs) > 2 else None
    values = np.zeros(channels) if bias is None else array(bias)
    fits = values is not None and values.shape in ((), (1,), (channels,), (1, channels))
    return values.reshape(-1).astype(np.float64) if values is not None and fits else None


def _scaled(linear: Node, weight: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """The weight times the gain of each output channel, in float64."""
    if linear.op_type == "ConvTranspose":
        group = attribute(linear, "group", 1)
        parts = weight.reshape(group, -1, *weight.shape[1:])  # (group, C / group, O / group, ...)
        spread = gain.reshape(group, 1, -1, *(1,) * (weight.ndim - 2))
        return (parts * spread).reshape(weight.shape)
    last = linear.op_type == "MatMul" or (
        linear.op_type == "Gemm" and not attribute(linear, "transB", 0)
    )
    axis = weight.ndim - 1 if last else 0
    return weight * gain.reshape([-1 if index == axis else 1 for index in range(weight.ndim)])


def _fuse(graph: Graph, pair: _Pair) -> None:
    linear, follower = pair.linear, pair.reader.node
    weight = graph.constant(f"{linear.name}_fused_weight", pair.weight)
    bias = graph.constant(f"{linear.name}_fused_bias", pair.bias)
    if linear.op_type == "MatMul":
        graph.become(linear, "Gemm", [linear.inputs[0], weight, bias])
    else:
        graph.set_inputs(linear, {1: weight, 2: bias})
    graph.replace_uses(follower.outputs[0], linear.outputs[0])
    graph.absorb(linear, follower)
