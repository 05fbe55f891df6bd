"""Normalizations in means, products and roots.

d = x - mean(x)        y = d / sqrt(mean(d * d) + epsilon) * scale + bias

    InstanceNormalization      over the axes behind batch and channel
    GroupNormalization         of (N, G, C / G ...); its scale is per group before opset 21
    LayerNormalization         over the axes from `axis` on
    BatchNormalization         with computed mean and variance
    LpNormalization            x / sum |x|  or  x / sqrt(sum x * x), 0 if x is 0
    MeanVarianceNormalization  d / (sqrt(mean(d * d)) + 1e-9)
    LRN                        x / (bias + alpha * mean of the squares of near channels) ** beta
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from npumake.graph import Value, array, attribute, shape
from npumake.passes.writing import Writing

PER_CHANNEL = 21  # the first opset with a scale per channel in GroupNormalization
MIN_NORMAL_FLOAT32 = float(np.finfo(np.float32).tiny)


def _input(write: Writing, index: int) -> Value | None:
    return write.node.inputs[index] if index < len(write.node.inputs) else None


def _x(write: Writing) -> Value:
    x = write.node.inputs[0]
    assert x is not None
    return x


def _apart(write: Writing, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """x - mean, the mean, and the variance."""
    mean = write.reduced("ReduceMean", x, axes)
    apart = write.insert("Sub", [x, mean], "apart")
    squares = write.insert("Mul", [apart, apart], "squares")
    return apart, mean, write.reduced("ReduceMean", squares, axes)


def _root(write: Writing, variance: Value) -> Value:
    epsilon = write.number(attribute(write.node, "epsilon", 1e-5), "epsilon")
    return write.insert("Sqrt", [write.insert("Add", [variance, epsilon], "sum")], "root")


def _normalized(write: Writing, x: Value, axes: Sequence[int]) -> Value:
    apart, _, variance = _apart(write, x, axes)
    return write.insert("Div", [apart, _root(write, variance)], "normalized")


def _along(write: Writing, value: Value | None, dims: Sequence[int], name: str) -> Value | None:
    """A scale or bias, reshaped to broadcast."""
    if value is None:
        return None
    values = array(value)
    if values is None:
        return write.shaped(value, dims, name)
    return write.constant(values.reshape(dims), name)


def _finished(write: Writing, y: Value, scale: Value | None, bias: Value | None) -> bool:
    """y * scale + bias, ending in the node."""
    if bias is None:
        return write.become(*(("Mul", [y, scale]) if scale is not None else ("Identity", [y])))
    scaled = y if scale is None else write.insert("Mul", [y, scale], "scaled")
    return write.become("Add", [scaled, bias])


def _instance_norm(write: Writing) -> bool:
    x = _x(write)
    dims = (1, -1, *(1,) * (len(shape(x)) - 2))
    y = _normalized(write, x, range(2, len(shape(x))))
    return _finished(write, y, *(_along(write, _input(write, i), dims, "row") for i in (1, 2)))


def _group_norm(write: Writing) -> bool:
    x, groups = _x(write), attribute(write.node, "num_groups")
    dims = shape(x)
    y = _normalized(write, write.shaped(x, (dims[0], groups, -1), "groups"), [2])
    scale, bias = _input(write, 1), _input(write, 2)
    if write.graph.opset < PER_CHANNEL:
        scale, bias = (_along(write, value, (1, groups, 1), "group") for value in (scale, bias))
        y = write.insert("Add", [write.insert("Mul", [y, scale], "scaled"), bias], "moved")
        return write.become("Reshape", [y, write.constant(np.array(dims, np.int64), "dims")])
    row = (1, -1, *(1,) * (len(dims) - 2))
    scale, bias = (_along(write, value, row, "row") for value in (scale, bias))
    return _finished(write, write.shaped(y, dims, "channels"), scale, bias)


def _layer_norm(write: Writing) -> bool:
    """Also computes the mean and 1 / root outputs if they are read."""
    x, node = _x(write), write.node
    rank = len(shape(x))
    apart, mean, variance = _apart(write, x, range(attribute(node, "axis", -1) % rank, rank))
    root = _root(write, variance)
    others = zip(node.outputs[1:], ("Identity", "Reciprocal"), (mean, root), strict=False)
    for output, kind, source in others:
        if output.uses() or output.is_graph_output():
            write.graph.replace_uses(output, write.insert(kind, [source], "kept"))
    y = write.insert("Div", [apart, root], "normalized")
    return _finished(write, y, _input(write, 1), _input(write, 2))


def _batch_norm(write: Writing) -> bool:
    x, node = _x(write), write.node
    if len(node.outputs) > 1 or attribute(node, "training_mode", 0):
        return False
    dims = (1, -1, *(1,) * (len(shape(x)) - 2))
    rows = [_along(write, _input(write, index), dims, "row") for index in range(1, 5)]
    scale, bias, mean, variance = rows
    assert variance is not None
    apart = write.insert("Sub", [x, mean], "apart")
    y = write.insert("Div", [apart, _root(write, variance)], "normalized")
    return _finished(write, y, scale, bias)


def _lp_norm(write: Writing) -> bool:
    x, order = _x(write), attribute(write.node, "p", 2)
    axes = [attribute(write.node, "axis", -1) % len(shape(x))]
    kind, read = ("Abs", [x]) if order == 1 else ("Mul", [x, x])
    length = write.reduced("ReduceSum", write.insert(kind, read, "sizes"), axes)
    if order == 2:
        length = write.insert("Sqrt", [length], "length")
    return write.become(
        "Div", [x, write.insert("Max", [length, write.number(MIN_NORMAL_FLOAT32)], "some")]
    )


def _mean_variance(write: Writing) -> bool:
    x = _x(write)
    axes = [axis % len(shape(x)) for axis in attribute(write.node, "axes", (0, 2, 3))]
    apart, _, variance = _apart(write, x, axes)
    root = write.insert("Sqrt", [variance], "root")
    return write.become("Div", [apart, write.insert("Add", [root, write.number(1e-9)], "some")])


def _lrn(write: Writing) -> bool:
    """An average pool slides over the channels, with counted pads."""
    x, node = _x(write), write.node
    size, dims = attribute(node, "size"), shape(x)
    squares = write.insert("Mul", [x, x], "squares")
    column = write.shaped(squares, (dims[0], 1, dims[1], math.prod(dims[2:])), "column")
    begin, end = (size - 1) // 2, size - 1 - (size - 1) // 2
    window = {"kernel_shape": [size, 1], "pads": [begin, 0, end, 0], "count_include_pad": 1}
    near = write.shaped(write.insert("AveragePool", [column], "near", **window), dims, "mean")
    weighed = write.insert("Mul", [near, write.number(attribute(node, "alpha", 1e-4))], "weighed")
    total = write.insert("Add", [weighed, write.number(attribute(node, "bias", 1.0))], "total")
    below = write.insert("Pow", [total, write.number(attribute(node, "beta", 0.75))], "below")
    return write.become("Div", [x, below])


RECIPES: Mapping[str, Callable[[Writing], bool]] = {
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _lrn,
    "LayerNormalization": _layer_norm,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
}
