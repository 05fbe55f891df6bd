"""Adaptive rounding of weights: each error made up for by the weights not yet rounded.

Rounding every weight to the nearest code is best for the weights, not for what the layer makes.
With X the inputs of a layer, one row per position and one column per weight of a channel, and t
what its bias may make up for, which needs no rounding,

    || X w - X q - t ||^2 = (w - q)' H (w - q)        H = X' X - n m m'        t = m' (w - q)

where m is the mean of the n rows of X. A layer without a bias that could change, a MatMul, has
H = X' X and t = 0. Then, for each channel,

few weights    the best of all ways to round each of them down or up: those of a depthwise Conv
many           one after the other, the one with the largest H[i, i] first. w[i] rounded to q[i]
               leaves an error that the others can cancel at best by (optimal brain surgery)

    w[j] -= (w[i] - q[i]) / U[i, i] * U[i, j]  for j > i        U' U = inverse of H, U upper

(E. Frantar, S. Ashkboos, T. Hoefler, D. Alistarh: GPTQ, ICLR 2023, arXiv 2210.17323; all rows of a
layer share H, each group of a Conv has its own). H gets DAMPING of its mean diagonal, so that it
has an inverse. Where there are few, and each channel has a scale of its own, it is tried as it is
and as all smaller RATIOS, no further than the bias allows, and the one with the least loss taken.

The scale of X does not matter, so it holds the codes of the input, whose products are summed
exactly: H does not depend on the number of threads.

Memory: H of POSITIONS per sample, BUDGET bytes of them at a time; the rest waits for another pass.
As much again holds the codes of the samples that are multiplied at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice, product
from typing import Any

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, attribute
from pipeline.kernels.window import padded, windows
from pipeline.quant.calibration.observe import Series
from pipeline.quant.precision.grids import MAX_BIAS
from pipeline.quant.precision.layers import (
    Layer,
    grid_of,
    quantized_layers,
    set_bias,
    set_scale,
    set_weight,
)

POSITIONS = 128
TOGETHER = 16  # samples
BUDGET = 256 << 20
BLOCK = 128  # weights rounded before the others are told, in one matrix product
DAMPING = 0.01
FEW = 9  # weights of a channel, whose 2^FEW ways to round them are all tried
RATIOS = np.linspace(1.0, 0.8, 11)


def adaptively_rounded(
    calibrated: Graph, feeds: Series, operators: Operators = NO_OPERATORS
) -> Graph:
    """A copy of a graph with Q/DQ on float weights, whose weights lie on the codes chosen.

    Left to the nearest code: ConvTranspose, and what is not on the chip.
    """
    graph = calibrated.copy()
    layers = [made for made in quantized_layers(graph) if made.node.op_type != "ConvTranspose"]
    for some in _portions(layers):
        for made, seen in zip(some, moments(calibrated, some, feeds, operators), strict=True):
            _round(graph, made, *about_mean(seen, made.node.op_type != "MatMul"))
    graph.drop_unused()
    return graph.with_shapes()


def _round(graph: Graph, made: Layer, h: np.ndarray, mean: np.ndarray) -> None:
    """Edit in place: its weights, its scales and what its bias makes up for."""
    weights, fed = grid_of(made.node.inputs[1]), grid_of(made.x)
    assert weights is not None
    assert fed is not None
    kernel = made.kernel()
    rows = kernel.reshape(*kernel.shape[:2], -1)
    limits = np.iinfo(weights.zero_point.dtype)
    scale = np.broadcast_to(weights.scale.astype(np.float64), made.channels)
    scale = scale.reshape(*rows.shape[:2], 1)
    if rows.shape[2] <= FEW:
        if weights.scale.size == made.channels and not _powers(weights.scale):
            smallest = np.abs(made.bias()).reshape(scale.shape) / (float(fed.scale[0]) * MAX_BIAS)
            scale = best_scale(rows, h, scale, smallest, limits)
            set_scale(graph, made, scale.reshape(-1))
        codes = best(rows / scale, h, limits.min, limits.max)
    else:
        codes = rounded(rows / scale, h, limits.min, limits.max)
    shift = ((rows - codes * scale) @ mean[..., None])[..., 0] * float(fed.scale[0])
    if shift.any():
        set_bias(graph, made, made.bias() + shift.reshape(-1))
    set_weight(graph, made, (codes * scale).reshape(kernel.shape))


def best_scale(
    rows: np.ndarray, h: np.ndarray, scale: np.ndarray, smallest: np.ndarray, limits: np.iinfo
) -> np.ndarray:
    """For each row, that of RATIOS * scale with the least loss, as float32 has it."""
    found, least = scale, np.full(scale.shape, np.inf)
    for ratio in RATIOS:
        tried = (ratio * scale).astype(np.float32).astype(np.float64)
        d = rows / tried - best(rows / tried, h, limits.min, limits.max)
        loss = ((d @ h) * d).sum(axis=2, keepdims=True) * tried**2
        better = (loss < least) & ((tried >= smallest) | (ratio == 1.0))
        found, least = np.where(better, tried, found), np.where(better, loss, least)
    return found


def best(w: np.ndarray, h: np.ndarray, low: int, high: int) -> np.ndarray:
    """The codes of least loss (w - q)' H (w - q) among all floors and ceilings, of equals the
    first; to nearest in a row that leaves [low, high]. Shapes as in `rounded`.

    With e = w - floor(w) and v in {0, 1}^n the loss is e'He - 2 e'Hv + v'Hv.
    """
    ways = np.array(list(product((0.0, 1.0), repeat=w.shape[2])))  # (2^n, n)
    down = np.floor(w)
    own = ((ways @ h) * ways).sum(axis=2)  # (groups, 2^n)
    loss = own[:, None] - 2.0 * ((w - down) @ h @ ways.T)
    codes = down + ways[np.argmin(loss, axis=2)]
    fits = ((codes >= low) & (codes <= high)).all(axis=2, keepdims=True)
    return np.where(fits, codes, np.clip(np.rint(w), low, high))


def rounded(w: np.ndarray, h: np.ndarray, low: int, high: int) -> np.ndarray:
    """Codes within [low, high] for weights in steps of their grid.

    w (groups, rows, n), h (groups, n, n), both float64; the result has the shape of w.
    """
    n = w.shape[2]
    order = np.argsort(-np.diagonal(h, axis1=1, axis2=2), axis=1, kind="stable")
    w = np.take_along_axis(w, order[:, None], axis=2)
    u = _upper(np.take_along_axis(np.take_along_axis(h, order[:, None], 2), order[..., None], 1))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        errors = np.empty((*w.shape[:2], stop - start))
        for i in range(start, stop):
            codes = np.clip(np.rint(w[:, :, i]), low, high)
            error = (w[:, :, i] - codes) / u[:, i, i, None]
            w[:, :, i + 1 : stop] -= error[..., None] * u[:, i, None, i + 1 : stop]
            w[:, :, i] = codes
            errors[:, :, i - start] = error
        w[:, :, stop:] -= errors @ u[:, start:stop, stop:]
    codes = np.empty_like(w)
    np.put_along_axis(codes, order[:, None], w, axis=2)
    return codes


def moments(
    graph: Graph, layers: list[Layer], feeds: Series, operators: Operators
) -> list[np.ndarray]:
    """[X, 1]' [X, 1] of each layer, shape (groups, n + 1, n + 1), over some positions of every
    feed."""
    watched = graph.copy()
    watched.expose(dict.fromkeys(str(made.x.name) for made in layers))
    watched.drop_unused()
    session = float_session(watched, operators)

    def seen(numbered: tuple[int, Feeds]) -> list[np.ndarray]:
        number, feed = numbered
        made = dict(zip(session.output_names, session.run(None, feed), strict=True))
        return [_codes(layer, made[str(layer.x.name)], number) for layer in layers]

    total = [np.zeros(_shape(made)) for made in layers]
    samples = side_by_side(seen, zip(count(), feeds))
    while some := list(islice(samples, _together(layers))):
        for whole, parts in zip(total, zip(*some, strict=True), strict=True):
            rows = np.concatenate(parts, axis=1, dtype=np.float64)
            whole += rows.swapaxes(1, 2) @ rows
    return total


def _together(layers: Sequence[Layer]) -> int:
    """How many samples' positions are multiplied at once: each product adds to all of H."""
    elements = POSITIONS * sum(int(np.prod(_shape(made)[:2])) for made in layers)
    return max(1, min(TOGETHER, BUDGET // (4 * elements)))


def about_mean(seen: np.ndarray, has_bias: bool) -> tuple[np.ndarray, np.ndarray]:
    """H, shape (groups, n, n), and the mean m that the bias makes up for, (groups, n)."""
    h, total = seen[:, :-1, :-1], seen[:, :-1, -1]
    if not has_bias:
        return h, np.zeros_like(total)
    mean = total / np.maximum(seen[:, -1:, -1], 1.0)
    return h - total[:, :, None] * mean[:, None], mean


def _upper(h: np.ndarray) -> np.ndarray:
    """U with U' U = inverse of h, damped; what never is fed (h[i, i] = 0) stands alone."""
    n = h.shape[1]
    diagonal = np.diagonal(h, axis1=1, axis2=2)
    damping = DAMPING * diagonal.mean(axis=1, keepdims=True) + (diagonal == 0)
    damped = h + damping[:, None] * np.eye(n)
    return np.linalg.cholesky(np.linalg.inv(damped)).swapaxes(1, 2)


def _codes(layer: Layer, x: np.ndarray, seed: int) -> np.ndarray:
    """[X, 1], the codes of x at some positions, (groups, positions, n + 1)."""
    grid = grid_of(layer.x)
    assert grid is not None
    rows = np.rint(_rows(layer, x, np.random.default_rng(seed)) / grid.scale)
    return np.concatenate([rows, np.ones((*rows.shape[:2], 1), rows.dtype)], axis=2)


def _rows(layer: Layer, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What the weights of each group meet at some positions, (groups, positions, n)."""
    groups, n = _shape(layer)[0], _shape(layer)[1] - 1
    if layer.node.op_type != "Conv":
        flat = x.reshape(-1, x.shape[-1])
        return flat[_chosen(len(flat), rng)][None]
    node, kernel = layer.node, layer.values.shape[2:]
    rank = len(kernel)
    pads = attribute(node, "pads", (0,) * 2 * rank)
    steps = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    view = windows(padded(x, pads, 0, np.float32), kernel, *steps)  # (N, C, *kernel, *out)
    where = (len(x), *view.shape[2 + rank :])
    sample, *place = np.unravel_index(_chosen(int(np.prod(where)), rng), where)
    every: tuple[Any, ...] = (slice(None),) * (1 + rank)
    rows = view[(sample, *every, *place)]  # (positions, C, *kernel)
    return rows.reshape(len(sample), groups, n).swapaxes(0, 1)


def _chosen(positions: int, rng: np.random.Generator) -> np.ndarray:
    if positions <= POSITIONS:
        return np.arange(positions)
    return np.sort(rng.choice(positions, POSITIONS, replace=False))


def _shape(layer: Layer) -> tuple[int, int, int]:
    groups, _, inputs, taps = layer.kernel().shape
    return groups, inputs * taps + 1, inputs * taps + 1


def _portions(layers: list[Layer]) -> Iterator[list[Layer]]:
    """The layers in order, as many at once as their H fit into BUDGET; one at least."""
    some: list[Layer] = []
    held = 0
    for made in layers:
        size = int(np.prod(_shape(made))) * 8
        if some and held + size > BUDGET:
            yield some
            some, held = [], 0
        some.append(made)
        held += size
    if some:
        yield some


def _powers(scale: np.ndarray) -> bool:
    """Whether all are powers of two, and have to stay so."""
    return bool((np.frexp(scale)[0] == 0.5).all())
