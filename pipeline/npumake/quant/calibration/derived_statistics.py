"""Derived statistics: those of tensors whose values follow from an observed tensor.

    Concat(a, b)          the values of both: histograms and extremes merge
    f(x), x * f(x)        the function's histogram: each bin of x at its center

f is any of npumake.engine.functions, so Sigmoid and SiLU are covered. An observed tensor keeps
onnxruntime from fusing its producer with its reader; in a network of SiLUs two thirds of the
tensors are not observed. A center is off by at most half a bin, 2**-15 of the largest magnitude.

The extremes of f over an interval [l, h] are those at its ends and at the one turning point t that
such a function may have, where l <= t <= h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from npumake.engine.functions import FUNCTIONS
from npumake.graph import Graph, Node, Value, attribute, producer, shape
from npumake.kernels.arrays import Floats, Int64
from npumake.kernels.histogram import (
    BINS,
    Histogram,
    codes,
    exponents,
    merged,
    non_empty,
    scale_of,
)
from npumake.quant.calibration.statistics import Extremes, Statistics

# The output has exactly the values of the input.
SAME_VALUES = frozenset(
    {
        "DepthToSpace",
        "Flatten",
        "Reshape",
        "SpaceToDepth",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)


@dataclass(frozen=True)
class ConcatStatistics:
    """Concat of `parts`, by name.

    `channels` is true if their channels are contiguous and known, false for images that are joined
    below each other.
    """

    parts: tuple[str, ...]
    channels: bool


@dataclass(frozen=True)
class FunctionStatistics:
    """f of every value of `source`; x * f(x) if it is `gated`."""

    source: str
    f: Callable[[Floats], Floats]
    gated: bool = False


Derivation = ConcatStatistics | FunctionStatistics
Turns = list[tuple[float, float]]  # turning points (x, y) of a function


class DerivedStatistics(NamedTuple):
    """The statistics of one tensor, observed or derived."""

    tensor: Histogram
    samples: Extremes
    channels: Extremes | None


def derivations(graph: Graph, names: Collection[str]) -> dict[str, Derivation]:
    """The tensors among `names` whose statistics follow from others of them; `names` are in graph
    order."""
    values = graph.values()
    by_name: dict[str, Derivation] = {}
    for name in names:
        maker = producer(values[name])
        derivation = None if maker is None or maker.domain else _derivation(maker, names, by_name)
        if derivation is not None:
            by_name[name] = derivation
    return by_name


def _derivation(
    node: Node, names: Collection[str], derived: Mapping[str, Derivation]
) -> Derivation | None:
    if node.op_type == "Concat":
        return _joined(node, names)
    read = [str(value.name) for value in node.inputs if value is not None]
    if (
        node.op_type in FUNCTIONS
        and read[0] in names
        and not isinstance(derived.get(read[0]), FunctionStatistics)
    ):
        return FunctionStatistics(read[0], lambda x: FUNCTIONS[node.op_type](node, x))
    for source, other in (read[:2], read[1::-1]) if node.op_type == "Mul" else ():
        inner = derived.get(other)
        if isinstance(inner, FunctionStatistics) and inner.source == source and not inner.gated:
            return FunctionStatistics(source, inner.f, gated=True)
    return None


def _joined(node: Node, names: Collection[str]) -> ConcatStatistics | None:
    read = [value for value in node.inputs if value is not None]
    origins = [_unmoved(value) for value in read]
    parts = tuple(str(value.name) for value in origins)
    if not set(parts) <= set(names):
        return None
    in_a_row = attribute(node, "axis") in (1, -3) and len(shape(node.outputs[0])) == 4
    return ConcatStatistics(parts, in_a_row and origins == read)


def _unmoved(value: Value) -> Value:
    maker = producer(value)
    while maker is not None and maker.op_type in SAME_VALUES and maker.inputs[0] is not None:
        value = maker.inputs[0]
        maker = producer(value)
    return value


def with_derived(
    statistics: Statistics, derived: Mapping[str, Derivation], names: Collection[str]
) -> Statistics:
    """The statistics of all `names`, in that order, from those of the observed tensors."""
    entries = {
        name: DerivedStatistics(tensor, statistics.samples[name], statistics.channels.get(name))
        for name, tensor in statistics.tensors.items()
    }
    for name, how in derived.items():
        if isinstance(how, ConcatStatistics):
            entries[name] = _join(how, [entries[part] for part in how.parts])
        else:
            entries[name] = _of_function(how, entries[how.source])
    channels = {name: entries[name].channels for name in names}
    return Statistics(
        {name: entries[name].tensor for name in names},
        {name: extremes for name, extremes in channels.items() if extremes is not None},
        {name: entries[name].samples for name in names},
        statistics.numbers,
        statistics.peaks,
    )


def _join(how: ConcatStatistics, parts: Sequence[DerivedStatistics]) -> DerivedStatistics:
    channels = [part.channels for part in parts]
    of_all = [extremes for extremes in channels if extremes is not None]
    return DerivedStatistics(
        reduce(merged, (part.tensor for part in parts)),
        reduce(or_, (part.samples for part in parts)),
        reduce(_behind, of_all) if how.channels and len(of_all) == len(parts) else None,
    )


def centers(h: Histogram) -> Floats:
    """The observed values, (n,) in rising order, each the middle of its bin."""
    x, _ = _middles(h)
    below = int(np.searchsorted(h.bins, BINS))
    return np.concatenate([x[:below][::-1], x[below:]])


def _middles(h: Histogram) -> tuple[Floats, Int64]:
    """The middles of the non-empty bins, clipped to the extremes, and their counts: (n,), negative
    ones first."""
    below = int(np.searchsorted(h.bins, BINS))
    x = ((h.bins & BINS - 1) + 0.5) * 2.0**h.exponent
    np.negative(x[:below], out=x[:below])
    return np.clip(x, h.low, h.high, out=x), h.bin_counts


def _of_function(how: FunctionStatistics, source: DerivedStatistics) -> DerivedStatistics:
    """The statistics of a function of one tensor, which runs over the middles of the bins and all
    extremes."""
    h, samples, channels = source
    middles, often = _middles(h)
    x, often = np.concatenate([middles, [h.low, h.high]]), np.concatenate([often, [0, 0]])
    ends = samples if channels is None else _behind(samples, channels)
    points = np.concatenate([x, ends.low, ends.high])
    y = points * how.f(points) if how.gated else how.f(points)
    tensor, turns = _image(h, x, y[: len(x)], often)
    low, high = _extremes(ends, np.split(y[len(x) :], 2), turns)
    own = len(samples.low)
    of_channels = None if channels is None else Extremes(low[own:], high[own:])
    return DerivedStatistics(tensor, Extremes(low[:own], high[:own]), of_channels)


def _behind(a: Extremes, b: Extremes) -> Extremes:
    return Extremes(np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high]))


def _image(h: Histogram, x: Floats, y: Floats, often: Int64) -> tuple[Histogram, Turns]:
    """The histogram of y = f(x), and the turning points: least and largest y that are not at an end
    of x."""
    ends = [int(np.argmin(y)), int(np.argmax(y))]
    low, high = (float(np.float32(value)) + 0.0 for value in y[ends])
    exponent = int(exponents(np.float32(max(-low, high))))
    counts = np.zeros((2, BINS), np.int64)
    np.add.at(counts.reshape(-1), codes(y.astype(np.float32), scale_of(exponent)), often)
    turns = [(x[end], y[end]) for end in ends if h.low < x[end] < h.high]
    return Histogram(exponent, *non_empty(counts), low, high, h.count), turns


def _extremes(intervals: Extremes, images: Sequence[Floats], turns: Turns) -> Extremes:
    """The extremes of f over `intervals`, from f at their ends and its turning points."""
    low, high = np.minimum(*images), np.maximum(*images)
    for t, y in turns:
        inside = (intervals.low <= t) & (t <= intervals.high)
        np.minimum(low, y, out=low, where=inside)
        np.maximum(high, y, out=high, where=inside)
    return Extremes(low.astype(np.float32), high.astype(np.float32))
