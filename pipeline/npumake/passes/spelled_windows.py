"""One-dimensional windows over an image of one row, and uneven averages as weighted sums.

x (N, C, L)    Reshape -> (N, C, 1, L)    window 1 x k    Reshape -> (N, O, M)

The sum is a Conv with ones per channel, times 1 / n at each position.

AveragePool  sum of the window / n       LpPool  (sum |x| ** p) ** (1 / p)

n counts the window's elements in the input, and in the pads if they count; it differs at the
border. Exact except for the order of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from npumake.graph import Value, array, attribute, shape
from npumake.kernels import pool
from npumake.passes.writing import Writing


class _Window:
    """The node's window, with the effective pads of its last positions."""

    def __init__(self, write: Writing, x: Value) -> None:
        node, self.spatial = write.node, shape(x)[2:]
        rank = len(self.spatial)
        self.kernel = list(attribute(node, "kernel_shape"))
        self.strides = list(attribute(node, "strides", (1,) * rank))
        self.dilations = list(attribute(node, "dilations", (1,) * rank))
        self.own = list(attribute(node, "pads", (0,) * 2 * rank))
        sizes = (self.spatial, self.kernel, self.own, self.strides, self.dilations)
        self.pads = list(pool.pool_pads(*sizes, ceil_mode=bool(attribute(node, "ceil_mode", 0))))

    def counts(self, with_pads: bool) -> np.ndarray:
        counted = self.own if with_pads else [0] * len(self.own)
        sizes = (self.spatial, self.kernel, self.pads, self.strides, self.dilations)
        return pool.counts(*sizes, counted)

    def summed(self, write: Writing, x: Value, channels: int) -> Value:
        kernel = write.constant(np.ones((channels, 1, *self.kernel), np.float32), "ones")
        window = {"strides": self.strides, "dilations": self.dilations, "pads": self.pads}
        return write.insert("Conv", [x, kernel], "sum", group=channels, **window)


def _is_plain(write: Writing, window: _Window) -> bool:
    """Whether every window has the same number of adjacent elements."""
    counts = window.counts(bool(attribute(write.node, "count_include_pad", 0)))
    return max(window.dilations) == 1 and bool((counts == prod(window.kernel)).all())


def _average(write: Writing) -> bool:
    x = write.node.inputs[0]
    assert x is not None
    window = _Window(write, x)
    if _is_plain(write, window):
        return _lifted(write)
    counts = window.counts(bool(attribute(write.node, "count_include_pad", 0)))
    share = write.constant((1 / counts).astype(np.float32)[None, None], "share")
    return write.become("Mul", [window.summed(write, x, shape(x)[1]), share])


def _lp(write: Writing) -> bool:
    x, order = write.node.inputs[0], attribute(write.node, "p", 2)
    assert x is not None
    size = write.insert("Abs", [x], "size")
    powers = write.insert("Pow", [size, write.number(order)], "powers")
    total = _Window(write, x).summed(write, powers, shape(x)[1])
    return write.become("Pow", [total, write.number(1 / order)])


WIDENED = {"dilations": [1], "kernel_shape": [1], "output_padding": [0], "strides": [1]}


def _lifted(write: Writing) -> bool:
    """The one-dimensional window as a two-dimensional one over a row."""
    node, (x, *weights) = write.node, write.node.inputs
    assert x is not None
    if len(shape(x)) != 3 or len(node.outputs) > 1:
        return False
    output, (samples, channels, length) = node.outputs[0], shape(x)
    weight = array(weights[0]) if weights else None
    if weights and weight is None:
        return False
    row = write.shaped(x, (samples, channels, 1, length), "row")
    if weight is not None:
        weights[0] = write.constant(weight[:, :, None], "weight")
    attributes = {name: attribute(node, name) for name in node.attributes}
    for name, first in WIDENED.items():
        if name in attributes:
            attributes[name] = [*first, *attributes[name]]
    if "pads" in attributes:
        begin, end = attributes["pads"]
        attributes["pads"] = [0, begin, 0, end]
    inner = write.insert(node.op_type, [row, *weights], "over_the_row", **attributes)
    dims = write.constant(np.array(shape(output), np.int64), "dims")
    return write.become("Reshape", [inner, dims])


RECIPES: Mapping[str, Callable[[Writing], bool]] = {
    "AveragePool": _average,
    "Conv": _lifted,
    "ConvTranspose": _lifted,
    "LpPool": _lp,
    "MaxPool": _lifted,
}
