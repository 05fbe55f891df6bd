"""Adaptive rounding of weights, layer after layer: each makes up for what those before it lost.

Rounding every weight to the nearest code is best for the weights, not for what the layer makes of
what it is fed (recovery.rounding). And what it is fed is not what the float model feeds it: its
grid and the layers before it, rounded already, have left their noise. With X the inputs in codes
and F those of the float layer, both about their means, the weights that make of X what the float
layer makes of F are by least squares

    w' = w + (X' X + R)^-1 X' (F - X) w        R = RIDGE * mean of the diagonal of X' X

and these are what is rounded, for X. The ridge keeps w' to what many samples agree on: with a tenth
of it the weights follow noise. What the means differ by, the bias takes. Fewer positions than a
channel has weights tell noise alone: there F is X. (Rounding and drift at once, without so wide a
ridge: Y. Li et al., GPTAQ, ICML 2025, arXiv 2504.02692.)

A layer without a bias that could change, a MatMul, is seen about zero. A channel with a scale of
its own has that stretched as its range is, and where it has few weights, all smaller RATIOS of it
are tried, no further than the bias allows, and the one of least loss is taken.

X holds codes, whose products are summed exactly, and F sixteenths of them. Samples are summed in
their order, whatever the number of threads.

Memory: BUDGET for what is carried (recovery.walk), as much for the positions that are multiplied at
once, POSITIONS of each sample or, where not all samples are on the way, of as many more; and H of
one layer, at most LARGEST. A layer of more inputs keeps the nearest codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph, Node, Value, attribute
from npumake.kernels.window import padded, windows
from npumake.quant.calibration.observe import Series
from npumake.quant.correction.rounding import FEW, best, best_scale, rounded
from npumake.quant.correction.steps import BUDGET, steps
from npumake.quant.correction.walk import LayerRoute, LayerWalk
from npumake.quant.precision.grids import MAX_BIAS
from npumake.quant.precision.linear_layers import (
    LinearLayer,
    grid_of,
    quantized_layers,
    set_bias,
    set_scale,
    set_weight,
)

POSITIONS = 128  # at most, EACH for each of a channel's weights
EACH, AT_LEAST = 4, 32
TOGETHER = 16  # samples
HELD = 64  # bytes for an input at a position, with what it is made from and what is made of it
LARGEST = 1 << 30
RIDGE = 3.0
FINER = 16  # parts of a code that the inputs of the float layer are told in


class Moments(NamedTuple):
    """Of what a layer is fed, X, and what the float layer is, F, in codes of X: sums over
    positions, about the means x and f, each of shape (groups, n)."""

    h: np.ndarray  # X' X, (groups, n, n)
    drift: np.ndarray  # w' (F - X)' X, a row for each channel: (groups, rows, n)
    x: np.ndarray
    f: np.ndarray


def round_adaptively(
    optimized_float: Graph,
    calibrated: Graph,
    feeds: Series,
    operators: Operators = NO_OPERATORS,
    budget: int = BUDGET,
) -> Graph:
    """A copy of `calibrated` with float weights on the codes chosen, other scales of these, and
    biases for what the means differ by.

    Both graphs have nodes of the same names. Left to the nearest code: ConvTranspose, and what is
    not on the chip.
    """
    graph = calibrated.copy()
    twins = {str(node.name): node for node in optimized_float.nodes()}
    layers = [layer for layer in quantized_layers(graph) if _is_rounded(layer, twins)]
    nodes = [layer.node for layer in layers]
    cut = steps(graph, nodes, first=True)
    as_meant = steps(optimized_float, [twins[str(node.name)] for node in nodes], first=True)
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
    return graph.with_shapes()


def _is_rounded(layer: LinearLayer, twins: Mapping[str, Node]) -> bool:
    groups, n = _shape(layer)
    if layer.node.op_type == "ConvTranspose" or 8 * groups * n * n > LARGEST:
        return False
    return str(layer.node.name) in twins


def _round(graph: Graph, layer: LinearLayer, moments: Moments) -> None:
    """Edit in place: its weights, their scales, and what its bias makes up for."""
    weights, inputs = grid_of(layer.node.inputs[1]), grid_of(layer.x)
    assert weights is not None
    assert inputs is not None
    rows, step = _weights(layer), float(inputs.scale[0])
    compensated = rows + compensation(moments)
    limits = np.iinfo(weights.zero_point.dtype)
    scale = np.broadcast_to(weights.scale.astype(np.float64), layer.channels)
    scale = scale.reshape(*rows.shape[:2], 1)
    free = weights.scale.size == layer.channels and not _powers(weights.scale)
    if free:
        smallest = np.abs(layer.bias()).reshape(scale.shape) / (step * MAX_BIAS)
        scale = np.maximum(scale * _stretched(rows, compensated), smallest)
        scale = scale.astype(np.float32).astype(np.float64)
    if rows.shape[2] <= FEW:
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
    """What weights gain, (groups, rows, n), so that of X they make what they made of F."""
    if not moments.drift.any():
        return np.zeros_like(moments.drift)
    diagonal = np.diagonal(moments.h, axis1=1, axis2=2)
    ridge = RIDGE * diagonal.mean(axis=1)[:, None] + (diagonal == 0)
    damped = moments.h + ridge[:, None] * np.eye(ridge.shape[1])
    return np.linalg.solve(damped, moments.drift.swapaxes(1, 2)).swapaxes(1, 2)


def _stretched(rows: np.ndarray, compensated: np.ndarray) -> np.ndarray:
    """How much wider the range of each row has become, (groups, rows, 1)."""
    before, now = (np.abs(w).max(axis=2, keepdims=True) for w in (rows, compensated))
    return np.divide(now, before, out=np.ones_like(now), where=(before > 0) & (now > 0))


def _moments(layer: LinearLayer, twin: Value | None, walk: LayerWalk, budget: int) -> Moments:
    """Over some positions of every sample on the way."""
    names = str(layer.x.name), str(twin.name)  # type: ignore[union-attr]
    weights, (groups, n) = _weights(layer), _shape(layer)
    positions = min(max(AT_LEAST, EACH * n), POSITIONS)
    positions = positions * len(walk.chosen) // max(len(walk.numbers), 1)

    def inputs_of(place: int) -> np.ndarray:
        real = np.stack(
            [tensors[place][name] for tensors, name in zip(walk.samples, names, strict=True)]
        )
        return _codes(layer, _rows(layer, real, positions, walk.numbers[place]))

    count, sums = 0, np.zeros((2, groups, n))
    few = weights.shape[1] < n  # channels: the products of each are fewer than those of all inputs
    h, drift = np.zeros((groups, n, n)), np.zeros(weights.shape if few else (groups, n, n))
    together = max(1, min(TOGETHER, budget // (HELD * positions * groups * n)))
    every = side_by_side(inputs_of, range(len(walk.numbers)))
    while some := list(islice(every, together)):
        x, f = np.concatenate(some, axis=2, dtype=np.float64)
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
    """Of what is summed over `count` positions about zero."""
    total = count * moments.x[:, None]
    drift = weights @ (moments.f - moments.x)[..., None] * total
    return moments._replace(h=moments.h - moments.x[..., None] * total, drift=moments.drift - drift)


def _codes(layer: LinearLayer, real: np.ndarray) -> np.ndarray:
    """X and F of what is fed, in the same shape."""
    grid = grid_of(layer.x)
    assert grid is not None
    x, f = real / grid.scale
    return np.stack([np.rint(x), np.rint(f * FINER) / FINER])


def _rows(layer: LinearLayer, values: np.ndarray, positions: int, seed: int) -> np.ndarray:
    """What the weights of each group meet at some positions, twice: (2, groups, positions, n)."""
    groups, n = _shape(layer)
    rng = np.random.default_rng(seed)
    if layer.node.op_type != "Conv":
        flat = values.reshape(2, 1, -1, values.shape[-1])
        return flat[:, :, _chosen(flat.shape[2], positions, rng)]
    node, kernel = layer.node, layer.values.shape[2:]
    rank = len(kernel)
    pads = attribute(node, "pads", (0,) * 2 * rank)
    strides = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    view = windows(
        padded(values, pads, 0, np.float32), kernel, *strides
    )  # (2, N, C, *kernel, *out)
    where = (view.shape[1], *view.shape[3 + rank :])
    sample, *place = np.unravel_index(_chosen(int(np.prod(where)), positions, rng), where)
    every: tuple[Any, ...] = (slice(None),) * (1 + rank)
    rows = np.stack(
        [values_of[(sample, *every, *place)] for values_of in view]
    )  # (2, positions, C, *kernel)
    return rows.reshape(2, len(sample), groups, n).swapaxes(1, 2)


def _chosen(every: int, positions: int, rng: np.random.Generator) -> np.ndarray:
    if every <= positions:
        return np.arange(every)
    return np.sort(rng.choice(every, positions, replace=False))


def _weights(layer: LinearLayer) -> np.ndarray:
    """(groups, rows, n), n weights of each channel."""
    kernel = layer.kernel()
    return kernel.reshape(*kernel.shape[:2], -1)


def _shape(layer: LinearLayer) -> tuple[int, int]:
    """Groups, and n."""
    groups, _, n = _weights(layer).shape
    return groups, n


def _powers(scale: np.ndarray) -> bool:
    """Whether all are powers of two, and have to stay so."""
    return bool((np.frexp(scale)[0] == 0.5).all())
