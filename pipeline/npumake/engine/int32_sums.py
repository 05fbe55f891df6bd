"""Layers that output their int32 sums, and the dequantization of these sums.

The sum of x * w + b is on the grid s_x * s_w of each channel. This scale is an array along the
channels, and a Transpose of the sums also transposes the scale.
"""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import SUMS, Instruction, Tensor
from npumake.engine.quantized_node import LoweredStep, QuantizedNode
from npumake.graph import Node, origin, shape
from npumake.kernels import affine

SUMMING = ("Conv", "Gemm")  # layers with constant weights, by their rules
MOVING = "Transpose"  # the only operator allowed between the sums and their dequantization


def sums_of(node: Node) -> Tensor:
    return Tensor(shape(node.outputs[0]), SUMS, 1.0)


def channel_scales(node: Node, site: QuantizedNode) -> np.ndarray:
    """s_x * s_w per channel of a layer, shaped to broadcast against its output; a scalar for one
    channel, and for weights with one scale."""
    rank = len(shape(node.outputs[0]))
    axis = 1 if node.op_type == "Conv" else rank - 1
    scale = (site.operands[0].scale * site.weights[0].scale).astype(np.float32)
    return affine.per_axis(scale, rank, axis)


def moved_scales(scale: np.ndarray, step: LoweredStep) -> np.ndarray:
    """The scales along the axes of the transposed sums; a scalar fits both."""
    return scale.transpose(step.attributes["perm"]) if scale.ndim else scale


def dequantizing(node: Node, name: str, codes: str, scale: np.ndarray) -> Instruction:
    """The instruction that dequantizes the sums of `node`."""
    outputs = (str(node.outputs[0].name),)
    return Instruction("dequantize", name, (codes,), outputs, {"scale": scale}, origin=origin(node))
