"""Averages as sums that are weighed: a Conv with ones for each channel, times 1 / n at each place.

AveragePool  sum of the window / n       LpPool  (sum |x| ** p) ** (1 / p)

n counts what the window covers of the input, and of the pads where they count; it differs at the
border. Exact but for the order of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from pipeline.graph import Value, attribute, shape
from pipeline.kernels import pool
from pipeline.passes.writing import Writing


class _Window:
    """That of the node, with the pads that its last windows reach into."""

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

    def summed(self, write: Writing, x: Value) -> Value:
        channels = shape(x)[1]
        ones = write.constant(np.ones((channels, 1, *self.kernel), np.float32), "ones")
        window = {"strides": self.strides, "dilations": self.dilations, "pads": self.pads}
        return write.made("Conv", [x, ones], "sum", group=channels, **window)


def is_plain(write: Writing, window: _Window) -> bool:
    """Whether every window has as many elements, and none of them is apart."""
    counts = window.counts(bool(attribute(write.node, "count_include_pad", 0)))
    return max(window.dilations) == 1 and bool((counts == prod(window.kernel)).all())


def _average(write: Writing) -> bool:
    x = write.node.inputs[0]
    assert x is not None
    window = _Window(write, x)
    if is_plain(write, window):
        return False
    counts = window.counts(bool(attribute(write.node, "count_include_pad", 0)))
    share = write.constant((1 / counts).astype(np.float32)[None, None], "share")
    return write.become("Mul", [window.summed(write, x), share])


def _lp(write: Writing) -> bool:
    x, order = write.node.inputs[0], attribute(write.node, "p", 2)
    assert x is not None
    size = write.made("Abs", [x], "size")
    powers = write.made("Pow", [size, write.number(order)], "powers")
    total = _Window(write, x).summed(write, powers)
    return write.become("Pow", [total, write.number(1 / order)])


RECIPES: Mapping[str, Callable[[Writing], bool]] = {"AveragePool": _average, "LpPool": _lp}
