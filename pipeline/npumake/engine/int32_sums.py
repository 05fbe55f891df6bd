"""Sums: what a layer accumulated, handed out in int32, and what makes real numbers of them.

The sum of x * w + b is on the grid s_x * s_w of each channel: the scale is an array, laid along the
channels, and is moved as the sums are.
"""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import SUMS, Instruction, Tensor
from npumake.engine.quantized_node import LoweredStep, QuantizedNode
from npumake.graph import Node, origin, shape
from npumake.kernels import affine

SUMMING = ("Conv", "Gemm")  # layers whose weights are constants, by their rules
MOVING = "Transpose"  # what the unit may do to the sums before they are dequantized


def sums_of(node: Node) -> Tensor:
    return Tensor(shape(node.outputs[0]), SUMS, 1.0)


def channel_scales(node: Node, site: QuantizedNode) -> np.ndarray:
    """s_x * s_w of each channel of a layer, of the rank of what it makes."""
    rank = len(shape(node.outputs[0]))
    axis = 1 if node.op_type == "Conv" else rank - 1
    scale = (site.operands[0].scale * site.weights[0].scale).astype(np.float32)
    return affine.per_axis(scale, rank, axis)


def moved_scales(scale: np.ndarray, step: LoweredStep) -> np.ndarray:
    return scale.transpose(step.attributes["perm"])


def dequantizing(node: Node, name: str, codes: str, scale: np.ndarray) -> Instruction:
    """What makes the real numbers of the sums of `node`."""
    outputs = (str(node.outputs[0].name),)
    return Instruction("dequantize", name, (codes,), outputs, {"scale": scale}, origin=origin(node))
