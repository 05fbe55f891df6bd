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
    axis: int  # of the output channels in the weight
    bias: np.ndarray
    gain: np.ndarray
    mean: np.ndarray
    beta: np.ndarray


def fuse_batch_norm(graph: Graph) -> int:
    fused = 0
    for node in graph.nodes("Conv", "Gemm"):
        while pair := _pair(node):  # one normalization may follow another
            _fuse(graph, pair)
            fused += 1
    return fused


def _pair(linear: Node) -> _Pair | None:
    norm, weight = _normalization(linear), array(linear.inputs[1])
    if norm is None or weight is None or not _is_plain(linear):
        return None
    axis = 0 if linear.op_type == "Conv" or attribute(linear, "transB", 0) else 1
    channels = weight.shape[axis]
    bias, statistics = _bias(linear, channels), [array(value) for value in norm.inputs[1:5]]
    if bias is None or any(found is None or found.shape != (channels,) for found in statistics):
        return None
    gamma, beta, mean, var = (np.asarray(found, np.float64) for found in statistics)
    gain = gamma / np.sqrt(var + attribute(norm, "epsilon", 1e-5))
    return _Pair(linear, norm, weight, axis, bias, gain, mean, beta)


def _normalization(linear: Node) -> Node | None:
    """The BatchNormalization, at inference, that alone reads what `linear` makes."""
    norm = only_consumer(linear.outputs[0])
    if norm is None or norm.op_type != "BatchNormalization" or norm.domain:
        return None
    return None if len(norm.outputs) != 1 or attribute(norm, "training_mode", 0) else norm


def _is_plain(linear: Node) -> bool:
    """A Gemm may also scale its product and its bias."""
    return attribute(linear, "alpha", 1.0) == 1.0 and attribute(linear, "beta", 1.0) == 1.0


def _bias(linear: Node, channels: int) -> np.ndarray | None:
    """Its bias, zeros when it has none; None when the bias is computed or not per channel."""
    given: Value | None = linear.inputs[2] if len(linear.inputs) > 2 else None
    found = np.zeros(channels) if given is None else array(given)
    return found if found is not None and found.shape in ((), (1,), (channels,)) else None


def _fuse(graph: Graph, pair: _Pair) -> None:
    per_channel = [-1 if axis == pair.axis else 1 for axis in range(pair.weight.ndim)]
    weight = pair.weight * pair.gain.reshape(per_channel)
    bias = pair.gain * (pair.bias - pair.mean) + pair.beta
    dtype = pair.weight.dtype
    graph.set_inputs(
        pair.linear,
        {
            1: graph.constant(f"{pair.linear.name}_fused_weight", weight.astype(dtype)),
            2: graph.constant(f"{pair.linear.name}_fused_bias", bias.astype(dtype)),
        },
    )
    graph.bypass(pair.norm)
