"""A node that computes gain * x + shift, one gain and one shift per channel (axis 1).

BatchNormalization    gain = gamma / sqrt(var + eps)    shift = beta - gain * mean
x + c, c + x, x - c   gain = 1                          shift = c, c, -c
c - x                 gain = -1                         shift = c
x * c, c * x, x / c   gain = c, c, 1 / c                shift = 0
depthwise 1x1 Conv    gain = weight                     shift = bias
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from npumake.graph import Node, Value, array, attribute


class Affine(NamedTuple):
    """gain and shift are float64 of shape (channels,)."""

    node: Node
    x: Value
    gain: np.ndarray
    shift: np.ndarray


def affine(node: Node) -> Affine | None:
    """The node as gain * x + shift; None for any other node, or for a gain or shift that is not
    finite."""
    rule = RULES.get(node.op_type)
    if rule is None or node.domain or len(node.outputs) != 1:
        return None
    function = rule(node)
    if function is None or not (
        np.isfinite(function.gain).all() and np.isfinite(function.shift).all()
    ):
        return None
    return function


def _normalization(node: Node) -> Affine | None:
    x, *parameters = node.inputs
    statistics = [array(value) for value in parameters]
    if x is None or attribute(node, "training_mode", 0):
        return None
    if any(values is None for values in statistics):
        return None
    gamma, beta, mean, var = (np.asarray(values, np.float64) for values in statistics)
    gain = gamma / np.sqrt(var + attribute(node, "epsilon", 1e-5))
    return Affine(node, x, gain, beta - gain * mean)


def _depthwise(node: Node) -> Affine | None:
    x, weight, *rest = node.inputs
    gain, bias = array(weight), array(rest[0]) if rest else np.zeros(1)
    if x is None or gain is None or bias is None or gain.size != attribute(node, "group", 1):
        return None
    if gain.shape[1:] != (1,) * (gain.ndim - 1) or not _same_shape(x, node.outputs[0]):
        return None
    if any(attribute(node, "pads", ())) or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    gain = gain.reshape(-1).astype(np.float64)
    return Affine(node, x, gain, np.broadcast_to(bias.astype(np.float64), gain.shape))


def _binary(node: Node) -> Affine | None:
    left, right = node.inputs
    x, other, rules = (left, right, BINARY) if array(left) is None else (right, left, SWAPPED)
    if x is None or node.op_type not in rules or array(x) is not None:
        return None
    c = per_channel(array(other), node.outputs[0])
    if c is None or not _same_shape(x, node.outputs[0]):
        return None
    with np.errstate(divide="ignore", over="ignore"):
        gain, shift = rules[node.op_type](c.astype(np.float64))
    return Affine(node, x, np.broadcast_to(gain, c.shape), np.broadcast_to(shift, c.shape))


def per_channel(constant: np.ndarray | None, like: Value) -> np.ndarray | None:
    """A constant that broadcasts to `like` with one value per channel, as shape (channels,); None
    for any other, or for an integer constant."""
    if constant is None or like.shape is None or constant.dtype.kind != "f":
        return None
    rank = len(like.shape)
    channels = like.shape[1] if rank > 1 else None
    if not isinstance(channels, int) or constant.ndim > rank:
        return None
    spread = [channels if axis == 1 else 1 for axis in range(rank)]
    aligned = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    if any(size not in (1, whole) for size, whole in zip(aligned.shape, spread, strict=True)):
        return None
    return np.broadcast_to(aligned, spread).reshape(-1)


def _same_shape(a: Value, b: Value) -> bool:
    return a.shape is not None and b.shape is not None and tuple(a.shape) == tuple(b.shape)


_Rule = Callable[[np.ndarray], tuple[np.ndarray | float, np.ndarray | float]]
BINARY: dict[str, _Rule] = {  # x first
    "Add": lambda c: (1.0, c),
    "Div": lambda c: (1.0 / c, 0.0),
    "Mul": lambda c: (c, 0.0),
    "Sub": lambda c: (1.0, -c),
}
SWAPPED: dict[str, _Rule] = {  # constant first
    "Add": lambda c: (1.0, c),
    "Mul": lambda c: (c, 0.0),
    "Sub": lambda c: (-1.0, c),
}
RULES: dict[str, Callable[[Node], Affine | None]] = {
    "BatchNormalization": _normalization,
    "Conv": _depthwise,
    **dict.fromkeys(BINARY, _binary),
}
