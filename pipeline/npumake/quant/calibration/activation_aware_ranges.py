"""Cuts ranges where every function that reads the tensor saturates.

    SiLU      x * sigmoid(x) is 0 for all x below -8 or so, HardSwish for all below -3
    Sigmoid   is 0 and 1 outside -9 .. 9

A convolution in front of one may reach -170. Most codes would then represent values that become 0.
Let g_1, g_2 ... be the tensors computed from x, and s_i the 8-bit step of g_i. The range of x
becomes the smallest [l, h] with

    |g_i(v) - g_i(min(max(v, l), h))| <= s_i / STEP_PARTS      for all i and all observed v

No 8-bit grid of g_i shows such a difference. The observed values are the bins of the histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from npumake.engine.functions import FUNCTIONS
from npumake.engine.fusion import absorbed, result
from npumake.graph import Graph, Node, Value, producer
from npumake.kernels.arrays import Floats
from npumake.kernels.histogram import Histogram
from npumake.quant.calibration.derived_statistics import centers
from npumake.quant.precision.placement import activations, is_data_movement, source_tensor

STEP_PARTS = 16.0
STEPS_8BIT = 255.0
CUT_POINTS = 256

Function = Callable[[Floats], Floats]
Interval = tuple[float, float]
ClippingErrors = dict[str, float]


class FunctionImage(NamedTuple):
    """A function g of each value of a tensor; `name` is the observed tensor that holds g(x)."""

    g: Function
    name: str


def activation_aware_ranges(
    graph: Graph, tensors: Mapping[str, Histogram], ranges: Mapping[str, Interval]
) -> dict[str, Interval]:
    """The ranges that shrink, by observed tensor of the float `graph`.

    `ranges` holds one (low, high) for each of `tensors`.
    """
    intervals: dict[str, Interval] = {}
    for name, images in _images(graph).items():
        spans = [np.subtract(*ranges[image.name][::-1]) for image in images]
        if min(spans) > 0:
            limits = [float(span) / STEPS_8BIT / STEP_PARTS for span in spans]
            interval = _narrowest_interval(tensors[name], [image.g for image in images], limits)
            (low, high), (min_low, max_high) = ranges[name], interval
            intervals[name] = (min(max(low, min_low), high), max(min(high, max_high), low))
    return intervals


def saturating_tensors(graph: Graph) -> frozenset[str]:
    """The observed tensors of the float `graph` whose readers all saturate."""
    return frozenset(_images(graph))


def clipping_errors(
    graph: Graph, cuts: Mapping[str, tuple[Interval, Interval]]
) -> dict[str, ClippingErrors]:
    """The error of cut ranges: max |g_i(v) - g_i(min(max(v, l), h))|, by tensor and by output g_i.

    `cuts` holds (reached range, cut range) by tensor; other tensors than the saturating ones are
    ignored.
    """
    deviations = {}
    for name, images in _images(graph).items():
        if name in cuts:
            reached, limits = cuts[name]
            ends = zip(reached, limits, strict=True)
            cut = np.concatenate([np.linspace(*end, CUT_POINTS) for end in ends])
            errors = {image.name: image.g(cut) - image.g(np.clip(cut, *limits)) for image in images}
            deviations[name] = {output: float(np.max(np.abs(by))) for output, by in errors.items()}
    return deviations


def _images(graph: Graph) -> dict[str, list[FunctionImage]]:
    """By observed tensor, the elementwise functions of it."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes():
        for value in dict.fromkeys(
            source_tensor(v) for v in activations(node) if not is_data_movement(node)
        ):
            readers.setdefault(value, []).append(node)
    graph_outputs = {source_tensor(value) for value in graph.outputs}
    by_tensor: dict[str, list[FunctionImage]] = {}
    for x, nodes in readers.items():
        products = [node for node in nodes if _factor(node, x) is not None]
        images: list[FunctionImage] = []
        for node in nodes:
            y = source_tensor(node.outputs[0])
            only_factor = set(readers.get(y, ())) <= set(products) and y not in graph_outputs
            function = _function(node, x)
            if function is None:
                break
            if node in products or not only_factor:
                images.append(FunctionImage(function, str(result(node).name)))
        else:
            if x not in graph_outputs:
                by_tensor[str(x.name)] = images
    return by_tensor


def _function(node: Node, x: Value) -> Function | None:
    """The elementwise function of x that `node` computes: f(x), or x * f(x)."""
    maker = _factor(node, x) or node
    if maker.op_type not in FUNCTIONS or maker.domain:
        return None
    f = FUNCTIONS[maker.op_type]
    return (lambda v: f(maker, v)) if maker is node else (lambda v: v * f(maker, v))


def _factor(node: Node, x: Value) -> Node | None:
    """The node of f in a product x * f(x)."""
    read = [source_tensor(value) for value in activations(node)]
    if node.op_type != "Mul" or len(read) != 2 or x not in read or absorbed(node) is not None:
        return None
    maker = producer(read[1] if read[0] is x else read[0])
    if maker is None or maker.op_type not in FUNCTIONS or maker.domain:
        return None
    return maker if source_tensor(activations(maker)[0]) is x else None


def _narrowest_interval(
    measured: Histogram, functions: list[Function], limits: list[float]
) -> Interval:
    """The smallest interval outside of which no function moves by more than its limit."""
    x = np.concatenate([[measured.low], centers(measured), [measured.high]])
    images = [g(x) for g in functions]
    return (
        float(x[min(_flat(y, limit) for y, limit in zip(images, limits, strict=True))]),
        float(x[-1 - min(_flat(y[::-1], limit) for y, limit in zip(images, limits, strict=True))]),
    )


def _flat(y: Floats, limit: float) -> int:
    """The last index i for which all of y[:i] lie within `limit` of y[i]."""
    lower, upper = np.minimum.accumulate(y), np.maximum.accumulate(y)
    near = (y - lower <= limit) & (upper - y <= limit)
    return int(np.flatnonzero(near)[-1])
