"""Adaptive rounding of weights, layer by layer: each compensates the error of those before it.

The nearest code is best for the weights, but not for the layer's output (correction.rounding). The
layer's input also differs from the float model's: its grid and the rounded layers before it add
noise. With X the inputs in codes and F those of the float layer, both about their means, the
weights that map X to the float layer's output of F are by least squares

    w' = w + (X' X + R)^-1 X' (F - X) w        R = RIDGE * mean of the diagonal of X' X

These are rounded, for X. The ridge limits w' to what many samples agree on; with a tenth of it the
weights follow noise. The bias takes the difference of the means. With fewer positions than a
channel has weights, F is X. (Rounding and drift at once, without so wide a ridge: Y. Li et al.,
GPTAQ, ICML 2025, arXiv 2504.02692.)

A layer without a bias, a MatMul, is computed about zero. A channel with a scale of its own has it
stretched with its range. With few weights, all smaller SCALE_RATIOS of it are tried within the
limit of the bias, and the one of least loss wins.

X holds codes, whose products are summed exactly, and F sixteenths of them. Samples are summed in
order, for any number of threads.

Memory: BUDGET_BYTES for carried tensors (engine.partial.walk), as much for the positions that are
multiplied at once (MAX_POSITIONS of each sample, or as many more if not all samples are on the
way), and H of one layer, at most MAX_HESSIAN_BYTES. Larger layers keep the nearest codes.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import steps_at
from npumake.engine.partial.walk import (
    BUDGET_BYTES,
    MAX_SAMPLES,
    LayerRoute,
    LayerWalk,
    Series,
)
from npumake.graph import Graph, Value, attribute, complete, shape
from npumake.graph.qdq import Grid, grid_behind
from npumake.kernels.window import padded, windows
from npumake.quant.correction.rounding import MAX_EXHAUSTIVE_WEIGHTS, best, best_scale, rounded
from npumake.quant.precision.grids import MAX_BIAS
from npumake.quant.precision.linear_layers import (
    LinearLayer,
    quantized_layers,
    set_bias,
    set_scale,
    set_weight,
)

MAX_POSITIONS = 128  # per sample
POSITIONS_PER_WEIGHT, MIN_POSITIONS = 4, 32
MAX_BATCH_SAMPLES = 16
BYTES_PER_INPUT = 64  # per position, intermediate arrays included
MAX_HESSIAN_BYTES = 1 << 30
RIDGE = 3.0
FLOAT_INPUT_PARTS = 16  # parts of a code to which float inputs are rounded


class Moments(NamedTuple):
    """Sums over positions of the layer's inputs X and the float layer's inputs F, in codes of X,
    about the means x and f of shape (groups, n)."""

    h: np.ndarray  # X' X, (groups, n, n)
    drift: np.ndarray  # w' (F - X)' X, a row for each channel: (groups, rows, n)
    x: np.ndarray
    f: np.ndarray


def round_adaptively(
    optimized_float: Graph,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    budget: int = BUDGET_BYTES,
) -> Graph:
    """A copy of `calibrated` with rounded weights, their scales and compensated biases.

    Weights stay float, on their codes. Both graphs have nodes of the same names. ConvTranspose and
    CPU nodes keep the nearest code.
    """
    graph = calibrated.copy()
    twins = {str(node.name): node for node in optimized_float.nodes()}
    layers = [
        layer
        for layer in quantized_layers(graph)
        if _is_small(layer) and str(layer.node.name) in twins
    ]
    nodes = [layer.node for layer in layers]
    cut = steps_at(graph, nodes, first=True)
    as_meant = steps_at(optimized_float, [twins[str(node.name)] for node in nodes], first=True)
    walk = LayerWalk(
        [LayerRoute(graph, cut), LayerRoute(optimized_float, as_meant)], feeds, operators, budget
    )
    for at, step in enumerate(cut):
        for layer in layers:
            if layer.node in step.nodes:
                real = twins[str(layer.node.name)].inputs[0]
                _round(graph, layer, _moments(layer, real, walk, budget))
        walk.step(at)
    graph.drop_unused()
    return complete(graph)


def has_restored_mean(layer: LinearLayer, samples: int) -> bool:
    """Whether rounding over so many samples restores the mean of the layer's output: if there are
    enough positions for F."""
    positions = math.prod(shape(layer.y)) // layer.channels
    return _is_small(layer) and positions * min(samples, MAX_SAMPLES) >= _shape(layer)[1]


def _is_small(layer: LinearLayer) -> bool:
    groups, n = _shape(layer)
    return layer.node.op_type != "ConvTranspose" and 8 * groups * n * n <= MAX_HESSIAN_BYTES


def _round(graph: Graph, layer: LinearLayer, moments: Moments) -> None:
    """Edits in place: the weights of a layer, their scales, and the bias."""
    weights, inputs = grid_behind(layer.node.inputs[1]), grid_behind(layer.x)
    assert weights is not None
    assert inputs is not None
    rows, step = _weights(layer), float(inputs.scale.item())
    compensated = rows + compensation(moments)
    limits = np.iinfo(weights.zero_point.dtype)
    scale = np.broadcast_to(weights.scale.astype(np.float64), layer.channels)
    scale = scale.reshape(*rows.shape[:2], 1)
    free = weights.scale.size == layer.channels and not _powers(weights.scale)
    if free:
        smallest = np.abs(layer.bias()).reshape(scale.shape) / (step * MAX_BIAS)
        scale = np.maximum(scale * _stretched(rows, compensated), smallest)
        scale = scale.astype(np.float32).astype(np.float64)
    if rows.shape[2] <= MAX_EXHAUSTIVE_WEIGHTS:
        if free:
            scale = best_scale(compensated, moments.h, scale, smallest, limits)
        codes = best(compensated / scale, moments.h, limits.min, limits.max)
    else:
        codes = rounded(compensated / scale, moments.h, limits.min, limits.max)
    if free:
        set_scale(graph, layer, scale.reshape(-1))
    shift = (rows @ moments.f[..., None] - (codes * scale) @ moments.x[..., None]) * step
    if shift.any():
        set_bias(graph, layer, layer.bias() + shift.reshape(-1))
    set_weight(graph, layer, (codes * scale).reshape(layer.kernel().shape))


def compensation(moments: Moments) -> np.ndarray:
    """The change of the weights, (groups, rows, n), with which X gives the outputs of F."""
    if not moments.drift.any():
        return np.zeros_like(moments.drift)
    diagonal = np.diagonal(moments.h, axis1=1, axis2=2)
    ridge = RIDGE * diagonal.mean(axis=1)[:, None] + (diagonal == 0)
    damped = moments.h + ridge[:, None] * np.eye(ridge.shape[1])
    return np.linalg.solve(damped, moments.drift.swapaxes(1, 2)).swapaxes(1, 2)


def _stretched(rows: np.ndarray, compensated: np.ndarray) -> np.ndarray:
    """The growth of each row's range, (groups, rows, 1)."""
    before, now = (np.abs(w).max(axis=2, keepdims=True) for w in (rows, compensated))
    return np.divide(now, before, out=np.ones_like(now), where=(before > 0) & (now > 0))


def _moments(layer: LinearLayer, twin: Value | None, walk: LayerWalk, budget: int) -> Moments:
    """The moments over some positions of every sample on the way."""
    names = str(layer.x.name), str(twin.name)  # type: ignore[union-attr]
    weights, (groups, n), grid = _weights(layer), _shape(layer), grid_behind(layer.x)
    assert grid is not None
    positions = min(max(MIN_POSITIONS, POSITIONS_PER_WEIGHT * n), MAX_POSITIONS)
    positions = positions * len(walk.chosen) // max(len(walk.numbers), 1)

    def inputs_of(place: int) -> np.ndarray:
        pairs = zip(walk.samples, names, strict=True)
        real = [
            _rows(layer, (groups, n), tensors[place][name], positions, walk.numbers[place])
            for tensors, name in pairs
        ]
        return _codes(np.stack(real), grid)

    count, sums = 0, np.zeros((2, groups, n))
    few = weights.shape[1] < n  # channels: the products of each are fewer than those of all inputs
    h, drift = np.zeros((groups, n, n)), np.zeros(weights.shape if few else (groups, n, n))
    together = max(1, min(MAX_BATCH_SAMPLES, budget // (BYTES_PER_INPUT * positions * groups * n)))
    every = side_by_side(inputs_of, range(len(walk.numbers)))
    while batch := list(islice(every, together)):
        x, f = np.concatenate(batch, axis=2, dtype=np.float64)
        count += x.shape[1]
        sums += x.sum(axis=1), f.sum(axis=1)
        h += x.swapaxes(1, 2) @ x
        d = (f - x).swapaxes(1, 2)
        drift += (weights @ d if few else d) @ x
    drift = drift if few else weights @ drift
    if count < n:
        drift, sums[1] = np.zeros_like(drift), sums[0]
    if layer.node.op_type == "MatMul":
        return Moments(h, drift, *np.zeros_like(sums))
    return _about_means(weights, Moments(h, drift, *sums / max(count, 1)), count)


def _about_means(weights: np.ndarray, moments: Moments, count: int) -> Moments:
    """Moments about the means, from sums over `count` positions about zero."""
    total = count * moments.x[:, None]
    drift = weights @ (moments.f - moments.x)[..., None] * total
    return moments._replace(h=moments.h - moments.x[..., None] * total, drift=moments.drift - drift)


def _codes(real: np.ndarray, grid: Grid) -> np.ndarray:
    """X and F in codes, in the shape of `real`."""
    x, f = real / grid.scale
    return np.stack([np.rint(x), np.rint(f * FLOAT_INPUT_PARTS) / FLOAT_INPUT_PARTS])


def _rows(
    layer: LinearLayer, size: tuple[int, int], values: np.ndarray, positions: int, seed: int
) -> np.ndarray:
    """The inputs of each group's weights at some positions, (groups, positions, n); `size` is
    (groups, n). A seed chooses the same positions of any tensor."""
    groups, n = size
    rng = np.random.default_rng(seed)
    if layer.node.op_type != "Conv":
        flat = values.reshape(1, -1, values.shape[-1])
        return flat[:, _chosen(flat.shape[1], positions, rng)]
    node, kernel = layer.node, layer.values.shape[2:]
    rank = len(kernel)
    pads = attribute(node, "pads", (0,) * 2 * rank)
    strides = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    if any(pads):
        values = padded(values, pads, 0, np.float32)
    view = windows(values, kernel, *strides)  # (N, C, *kernel, *out)
    where = (len(view), *view.shape[2 + rank :])
    sample, *place = np.unravel_index(_chosen(int(np.prod(where)), positions, rng), where)
    every: tuple[Any, ...] = (slice(None),) * (1 + rank)
    rows = view[(sample, *every, *place)]  # (positions, C, *kernel)
    return rows.reshape(len(sample), groups, n).swapaxes(0, 1)


def _chosen(every: int, positions: int, rng: np.random.Generator) -> np.ndarray:
    if every <= positions:
        return np.arange(every)
    return np.sort(rng.choice(every, positions, replace=False))


def _weights(layer: LinearLayer) -> np.ndarray:
    """(groups, rows, n), n weights of each channel."""
    kernel = layer.kernel()
    return kernel.reshape(*kernel.shape[:2], -1)


def _shape(layer: LinearLayer) -> tuple[int, int]:
    """The number of groups, and n."""
    groups, _, n = _weights(layer).shape
    return groups, n


def _powers(scale: np.ndarray) -> bool:
    """Whether all scales are powers of two, which they must stay."""
    return bool((np.frexp(scale)[0] == 0.5).all())
