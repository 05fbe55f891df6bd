"""SmoothQuant: moves the quantization difficulty from activations to weights.

A tensor has one scale, so a few large channels leave the others few codes. The weights that read it
still have headroom. For a group (correction.rescale_groups), with a[c] = max |x| of channel c over
the samples and w[c] the largest weight that reads it,

    s[c] = a[c]^p / w[c]^(1 - p)        x / s        w * s

p = 1/2 makes both sqrt(a[c] * w[c]) (G. Xiao et al.: SmoothQuant, ICML 2023, arXiv 2211.10438). The
maker of the tensor takes 1 / s: a layer, a LayerNormalization, or constants that are added. p = 1
throughout gives every channel a grid of its own, as a per-channel activation scale would; a chip
also has to take that up in the weights. Behind a function such as Gelu nothing moves.

If only depthwise layers with per-channel scales read the tensor, their weights lose nothing, and
s[c] = a[c]^p. p = 1 would clip every channel where the samples end. p = DEPTHWISE_STRENGTH leaves
the small channels room, and gains three quarters of the bits. A channel that is almost silent over
the samples counts as MIN_PEAK_SHARE of the largest. Where a Clip bounds the group, the largest
channel keeps s = 1, and nothing moves if values beyond the bound are on a grid. (Measurements stand
in docs/precision.md.)

A self-gated activation, SiLU or hard-swish, passes the factor for one more layer
(correction.self_gates): its group moves only where its tensors are uneven, and weights have a scale
per channel. Depthwise readers take it with p = 1: the small channels are a thousandth of the large.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.opened import of_tensors
from npumake.engine.partial.walk import Series
from npumake.graph import Graph
from npumake.kernels.affine import other_axes
from npumake.quant.calibration.statistics import Extremes
from npumake.quant.correction.rescale_groups import RescaleGroup, find_rescale_groups, rescaled
from npumake.quant.precision.placement import observed_tensors
from npumake.targets.target import WeightGrid

STRENGTH = 0.5
DEPTHWISE_STRENGTH = 0.75  # where only depthwise layers read, at least
NO_EXTREMES: Mapping[str, Extremes] = MappingProxyType({})
MIN_RELATIVE_SIZE = 1e-5  # of the largest; keeps s finite
MIN_PEAK_SHARE = 1 / 64  # of the largest, in front of depthwise layers


class Migration(NamedTuple):
    """What moves: `strength` is p, 0..1.

    `extremes` are known channel extremes over the feeds, by tensor: the graph runs only for others.
    `uneven` names the tensors whose group may pass a self-gated activation. `in_depthwise` selects
    the groups by whether they cost nothing (`costs_nothing`); None: all.
    """

    strength: float = STRENGTH
    extremes: Mapping[str, Extremes] = NO_EXTREMES
    uneven: Collection[str] = ()
    in_depthwise: bool | None = None


PLAIN = Migration()


def smoothquant(
    graph: Graph,
    feeds: Series,
    scheme: WeightGrid,
    operators: Operators = NO_OPERATORS,
    strength: float = STRENGTH,
) -> Graph:
    """A copy of a float graph that computes the same, with activations that are easier to quantize.

    `scheme` is that of the weights. `strength` is p, 0..1.
    """
    migration = Migration(strength)
    return rescaled(graph, smoothquant_factors(graph, feeds, scheme, operators, migration))


def smoothquant_factors(
    graph: Graph,
    feeds: Series,
    scheme: WeightGrid,
    operators: Operators = NO_OPERATORS,
    migration: Migration = PLAIN,
) -> dict[str, list[float]]:
    """The divisors of the channels of each group that moves, by its name."""
    is_clipped = migration.in_depthwise is True
    groups = [
        group
        for group in find_rescale_groups(graph, gated=scheme.per_channel, clipped=is_clipped)
        if not group.gates or is_uneven(group, migration.uneven)
        if migration.in_depthwise in (None, costs_nothing(group, scheme))
    ]
    peaks = _peaks(graph, groups, feeds, operators, migration.extremes)
    factors = {
        group.name: _factor_of(group, a, scheme, migration.strength)
        for group, a in zip(groups, peaks, strict=True)
    }
    return {name: s.tolist() for name, s in factors.items() if (s != 1.0).any()}


def costs_nothing(group: RescaleGroup, scheme: WeightGrid) -> bool:
    """Whether weights lose nothing by any factor, and no layer is added."""
    return not group.gates and _depthwise_alone(group, scheme)


def passes_gates(graph: Graph, scheme: WeightGrid, uneven: Collection[str]) -> bool:
    """Whether a factor would pass a self-gated activation between these uneven tensors."""
    groups = find_rescale_groups(graph, gated=True) if scheme.per_channel and uneven else []
    return any(group.gates and is_uneven(group, uneven) for group in groups)


def is_uneven(group: RescaleGroup, uneven: Collection[str]) -> bool:
    return any(value.name in uneven for value in group.axes)


def _depthwise_alone(group: RescaleGroup, scheme: WeightGrid) -> bool:
    """Whether each reader has a weight scale for every channel of the group."""
    return scheme.per_channel and all(r.kernel().shape[2] == 1 for r in group.readers.values())


def _factor_of(group: RescaleGroup, a: np.ndarray, scheme: WeightGrid, p: float) -> np.ndarray:
    if not _depthwise_alone(group, scheme):
        return _factor(group, a, p)
    if group.gates:
        return _factor(group, a, 1.0)
    share = MIN_RELATIVE_SIZE if p == 1.0 else MIN_PEAK_SHARE
    if not a.any() or a.max() > group.limit:
        return np.ones(group.channels)
    peaks = np.maximum(a, share * a.max())
    unit = 1.0 if group.limit == math.inf else a.max()
    return (peaks / unit) ** max(p, DEPTHWISE_STRENGTH)


def _factor(group: RescaleGroup, a: np.ndarray, p: float) -> np.ndarray:
    """s of each channel, from the activation peaks a and the weights of the readers."""
    w = np.max(
        [np.abs(read.kernel()).max(axis=(1, 3)).reshape(-1) for read in group.readers.values()],
        axis=0,
    )
    a, w = (np.maximum(sizes, MIN_RELATIVE_SIZE * sizes.max()) for sizes in (a, w))
    if not (a.all() and w.all()):
        return np.ones(group.channels)  # all inputs or all weights are zero
    return a**p / w ** (1 - p)


def _peaks(
    graph: Graph,
    groups: list[RescaleGroup],
    feeds: Series,
    operators: Operators,
    extremes: Mapping[str, Extremes],
) -> list[np.ndarray]:
    """a of each group: max |x| per channel over its tensors with a grid."""
    on_grids = observed_tensors(graph)
    axes = [{str(value.name): axis for value, axis in group.axes.items()} for group in groups]
    on_grid = [
        {name: axis_peaks[name] for name in on_grids if name in axis_peaks} for axis_peaks in axes
    ]
    peaks, unknown = {}, {}
    for name, axis in (item for axis_peaks in on_grid for item in axis_peaks.items()):
        if name in extremes and axis == 1:  # the channel axis of the statistics
            low, high = extremes[name]
            peaks[name] = np.maximum(-low, high).astype(np.float64)
        else:
            unknown[name] = axis
    peaks |= _measured(graph, unknown, feeds, operators)
    return [np.max([peaks[name] for name in axis_peaks], axis=0) for axis_peaks in on_grid]


def _measured(
    graph: Graph, axes: Mapping[str, int], feeds: Series, operators: Operators
) -> dict[str, np.ndarray]:
    """max |x| per channel of each tensor over the feeds, along its axis."""
    if not axes:
        return {}
    part = of_tensors(graph, axes, operators)

    def measured(feed: Feeds) -> dict[str, np.ndarray]:
        return {name: _peak(values, axes[name]) for name, values in part.run(feed).items()}

    peaks = {name: np.zeros(1) for name in axes}
    for entry in side_by_side(measured, feeds):
        peaks = {name: np.maximum(peak, entry[name]) for name, peak in peaks.items()}
    return peaks


def _peak(values: np.ndarray, axis: int) -> np.ndarray:
    return np.abs(values).max(axis=other_axes(values.ndim, axis)).astype(np.float64)
