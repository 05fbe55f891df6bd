"""Fuses a gain and shift into the weight and bias of the convolution behind it.

    W (gain * x + shift) + b:      W' = gain * W      b' = b + W shift      without padding
    gain * x + shift:              gain * (x + shift / gain)                with zero padding

Only a scalar gain: a per-channel one would make the weights of a filter uneven and coarser to
quantize. Preprocessing of model inputs is left alone.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array, attribute, only_consumer
from npumake.passes.affine import BINARY, Affine, affine


def fuse_ahead(graph: Graph) -> int:
    fused = 0
    for conv in graph.nodes("Conv"):
        while _fused(graph, conv):  # a sum may precede a product
            fused += 1
    return fused


def _fused(graph: Graph, conv: Node) -> bool:
    ahead, weight, bias = _ahead(conv), array(conv.inputs[1]), _bias(conv)
    if ahead is None or weight is None or bias is None or weight.dtype.kind != "f":
        return False
    if not ahead.shift.any() or not _pads(conv):
        return _folded(graph, conv, ahead, weight, bias)
    product = _ahead(ahead.node)
    if not _is_one(ahead.gain, 1.0) or product is None or product.shift.any():
        return False
    return _swapped(graph, ahead, product)


def _folded(graph: Graph, conv: Node, ahead: Affine, weight: np.ndarray, bias: np.ndarray) -> bool:
    """The weight times the gain, and the bias plus each filter's response to the shift."""
    groups = attribute(conv, "group", 1)
    by_channel = weight.astype(np.float64).sum(tuple(range(2, weight.ndim)))
    shifts = ahead.shift.reshape(groups, -1).repeat(len(weight) // groups, axis=0)
    with np.errstate(over="ignore"):
        scaled = (weight * ahead.gain[0]).astype(weight.dtype)
        moved = (bias + (by_channel * shifts).sum(1)).astype(weight.dtype)
    if not (np.isfinite(scaled).all() and np.isfinite(moved).all()):
        return False
    inputs = {0: ahead.x, 1: graph.constant(f"{conv.name}_ahead_weight", scaled)}
    if ahead.shift.any():
        inputs[2] = graph.constant(f"{conv.name}_ahead_bias", moved)
    graph.set_inputs(conv, inputs)
    graph.absorb(conv, ahead.node)
    return True


def _swapped(graph: Graph, added: Affine, product: Affine) -> bool:
    """Moves the sum before the product, with a shift that the product restores."""
    rank = len(product.x.shape or ())
    element = next(c for value in added.node.inputs if (c := array(value)) is not None).dtype
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        shift = (added.shift / product.gain[0]).astype(element)
    if not np.isfinite(shift).all():
        return False
    first = graph.constant(f"{product.node.name}_shift", shift.reshape(1, -1, *(1,) * (rank - 2)))
    gain = graph.constant(f"{added.node.name}_gain", np.array(product.gain[0], element))
    graph.become(product.node, "Add", [product.x, first])
    graph.become(added.node, "Mul", [product.node.outputs[0], gain])
    return True


def _ahead(node: Node) -> Affine | None:
    """The scalar product or sum that only this node reads and that is not preprocessing."""
    x = node.inputs[0]
    if x is None or only_consumer(x) is not node:
        return None
    maker = x.producer()
    function = None if maker is None or maker.op_type not in BINARY else affine(maker)
    if function is None or _reads_inputs(function) or not _is_one(function.gain, function.gain[0]):
        return None
    return function


def _reads_inputs(function: Affine) -> bool:
    """Whether only such nodes are between a model input and this one."""
    before: Affine | None = function
    while before is not None:
        maker = before.x.producer()
        if maker is None:
            return True
        before = affine(maker)
    return False


def _is_one(gain: np.ndarray, number: float) -> bool:
    return bool((gain == number).all())


def _pads(conv: Node) -> bool:
    return bool(any(attribute(conv, "pads", ()))) or attribute(conv, "auto_pad", "NOTSET") in (
        "SAME_UPPER",
        "SAME_LOWER",
    )


def _bias(conv: Node) -> np.ndarray | None:
    """In float64; zeros without a bias, None for a computed one."""
    bias = conv.inputs[2] if len(conv.inputs) > 2 else None
    if bias is None:
        return np.zeros(1)
    values = array(bias)
    return None if values is None else values.astype(np.float64)
