"""BatchNormalization into the convolution or Gemm before it.

y = gamma * (W x + b - mean) / sqrt(var + eps) + beta is again a convolution:

    gain = gamma / sqrt(var + eps)      W' = gain * W      b' = gain * (b - mean) + beta

gain is per output channel, so groups need no special case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.graph import Graph, Node, Value, array, attribute, only_consumer


class _Pair(NamedTuple):
    linear: Node
    norm: Node
    weight: np.ndarray
    bias: np.ndarray
    gain: np.ndarray
    mean: np.ndarray
    beta: np.ndarray


def fuse_batch_norm(graph: Graph) -> int:
    found = [pair for node in graph.nodes("Conv", "Gemm") if (pair := _pair(node))]
    for pair in found:
        _fuse(graph, pair)
    return len(found)


def _pair(linear: Node) -> _Pair | None:
    norm = only_consumer(linear.outputs[0])
    if norm is None or norm.op_type != "BatchNormalization" or len(norm.outputs) != 1:
        return None
    weight, bias = array(linear.inputs[1]), _bias(linear)
    statistics = [array(value) for value in norm.inputs[1:5]]
    if weight is None or bias is None or any(found is None for found in statistics):
        return None
    if linear.op_type == "Gemm" and not _is_plain(linear):
        return None
    gamma, beta, mean, var = (np.asarray(found, np.float64) for found in statistics)
    gain = gamma / np.sqrt(var + attribute(norm, "epsilon", 1e-5))
    return _Pair(linear, norm, weight, bias, gain, mean, beta)


def _is_plain(gemm: Node) -> bool:
    return attribute(gemm, "alpha", 1.0) == 1.0 and attribute(gemm, "beta", 1.0) == 1.0


def _bias(linear: Node) -> np.ndarray | None:
    """Its bias, zeros when it has none; None when the bias is computed or not per channel."""
    given: Value | None = linear.inputs[2] if len(linear.inputs) > 2 else None
    if given is None:
        return np.zeros(1)
    found = array(given)
    return found if found is not None and found.ndim <= 1 else None


def _fuse(graph: Graph, pair: _Pair) -> None:
    axis = 0 if pair.linear.op_type == "Conv" or attribute(pair.linear, "transB", 0) else 1
    per_channel = [-1 if index == axis else 1 for index in range(pair.weight.ndim)]
    weight = pair.weight * pair.gain.reshape(per_channel)
    bias = pair.gain * (pair.bias - pair.mean) + pair.beta
    graph.set_inputs(
        pair.linear,
        {
            1: graph.constant(f"{pair.linear.name}_weight", weight.astype(np.float32)),
            2: graph.constant(f"{pair.linear.name}_bias", bias.astype(np.float32)),
        },
    )
    graph.bypass(pair.norm)
