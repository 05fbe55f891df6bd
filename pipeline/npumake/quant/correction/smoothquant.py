"""Scale migration: what is hard to quantize moved from the activations into the weights.

A tensor has one scale, so a few channels far larger than the others leave these few codes; the
weights that read it have room to spare. For a bundle (recovery.rescale), with a[c] = max |x|
of channel c over the samples and its tensors and w[c] the largest weight that reads it,

    s[c] = a[c]^p / w[c]^(1 - p)        x / s        w * s

p = 1/2 makes both sqrt(a[c] * w[c]) (G. Xiao et al.: SmoothQuant, ICML 2023, arXiv 2211.10438).
Where only depthwise layers read, and each channel of theirs has a scale of its own, p = 1: the
weights lose nothing. Who makes the tensor takes 1 / s: a layer, a LayerNormalization, or constants
that are added. With p = 1 throughout every channel has a grid of its own, which is what a scale per
channel of the activation would be: a chip, too, has to take that up in the weights that read it.
There is no node to pay for it; behind a function such as Gelu, where there would
be, nothing is moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph
from npumake.kernels.affine import other_axes
from npumake.quant.calibration.observe import Series
from npumake.quant.calibration.statistics import Extremes
from npumake.quant.correction.rescale_groups import RescaleGroup, find_rescale_groups, rescaled
from npumake.quant.precision.linear_layers import LinearLayer
from npumake.quant.precision.placement import observed_tensors
from npumake.targets.target import WeightGrid

STRENGTH = 0.5
NOTHING_KNOWN: Mapping[str, Extremes] = MappingProxyType({})
SMALLEST = 1e-5  # of the largest: what is smaller counts as that, and s stays finite


def smoothquant(
    graph: Graph,
    feeds: Series,
    scheme: WeightGrid,
    operators: Operators = NO_OPERATORS,
    strength: float = STRENGTH,
) -> Graph:
    """A copy of a float graph that computes the same, its activations easier to quantize,
    for weights of this scheme.

    `strength` is p: how much of the difficulty moves, 0..1.
    """
    return rescaled(graph, smoothquant_factors(graph, feeds, scheme, operators, strength))


def smoothquant_factors(
    graph: Graph,
    feeds: Series,
    scheme: WeightGrid,
    operators: Operators = NO_OPERATORS,
    strength: float = STRENGTH,
    extremes: Mapping[str, Extremes] = NOTHING_KNOWN,
) -> dict[str, list[float]]:
    """What to divide the channels of each bundle by, by its name.

    `known` are the extremes of channels over the feeds, by tensor: the graph is run only where
    those of others are needed.
    """
    groups = find_rescale_groups(graph)
    s: dict[str, list[float]] = {}
    for bundle, a in zip(groups, _peaks(graph, groups, feeds, operators, extremes), strict=True):
        alone = scheme.per_channel and all(_is_depthwise(r) for r in bundle.readers.values())
        s[bundle.name] = _factor(bundle, a, 1.0 if alone else strength).tolist()
    return s


def _is_depthwise(read: LinearLayer) -> bool:
    return read.kernel().shape[2] == 1


def _factor(bundle: RescaleGroup, a: np.ndarray, p: float) -> np.ndarray:
    """s of each channel, by the samples' peaks a and the weights that read it."""
    w = np.max(
        [np.abs(read.kernel()).max(axis=(1, 3)).reshape(-1) for read in bundle.readers.values()],
        axis=0,
    )
    a, w = (np.maximum(sizes, SMALLEST * sizes.max()) for sizes in (a, w))
    if not (a.all() and w.all()):
        return np.ones(bundle.channels)  # nothing is fed, or nothing is read
    return a**p / w ** (1 - p)


def _peaks(
    graph: Graph,
    groups: list[RescaleGroup],
    feeds: Series,
    operators: Operators,
    extremes: Mapping[str, Extremes],
) -> list[np.ndarray]:
    """a of each bundle: max |x| per channel over those of its tensors that have a grid."""
    on_grids = observed_tensors(graph)
    axes = [{str(value.name): axis for value, axis in bundle.axes.items()} for bundle in groups]
    on_grid = [{name: some[name] for name in on_grids if name in some} for some in axes]
    peaks, unknown = {}, {}
    for name, axis in (item for some in on_grid for item in some.items()):
        if name in extremes and axis == 1:  # where statistics have channels
            low, high = extremes[name]
            peaks[name] = np.maximum(-low, high).astype(np.float64)
        else:
            unknown[name] = axis
    peaks |= _measured(graph, unknown, feeds, operators)
    return [np.max([peaks[name] for name in some], axis=0) for some in on_grid]


def _measured(
    graph: Graph, axes: Mapping[str, int], feeds: Series, operators: Operators
) -> dict[str, np.ndarray]:
    """max |x| over the feeds of the channels of each tensor, along its axis."""
    if not axes:
        return {}
    watched = graph.copy()
    watched.expose(axes)
    session = float_session(watched, operators)

    def measured(feed: Feeds) -> dict[str, np.ndarray]:
        outputs = zip(session.output_names, session.run(None, feed), strict=True)
        return {name: _peak(values, axes[name]) for name, values in outputs}

    peaks = {name: np.zeros(1) for name in axes}
    for part in side_by_side(measured, feeds):
        peaks = {name: np.maximum(peak, part[name]) for name, peak in peaks.items()}
    return peaks


def _peak(values: np.ndarray, axis: int) -> np.ndarray:
    return np.abs(values).max(axis=other_axes(values.ndim, axis)).astype(np.float64)
