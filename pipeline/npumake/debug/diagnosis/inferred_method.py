"""Infers the calibration method behind a model's scales, and the scales that do not follow it.

    ratio    scale of a tensor / scale that the method derives from the tensor's values

The inferred method is the one with the fewest ratios other than 1. A scale whose ratio exceeds
ODD_RATIO does not follow it: a scale twice the needed one proves nothing alone, but is an outlier
if all others follow one method.

Other samples, and weights rounded since, move the ratios by up to SIMILAR_RATIO. Within
EXACT_RATIO the values are those that the scales were derived from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.borders.images import images
from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.diagnosis.range_fit import Fit, fitted_grid, is_centred
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import Graph
from npumake.project.sections import Calibration, Method
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import int16_ranges, ranges
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.placement import source_tensor
from npumake.quant.search.methods import PERCENTILE, PERCENTILES

METHODS: tuple[Calibration, ...] = (
    *(Calibration("kl"), Calibration("max")),
    *(Calibration(PERCENTILE, share) for share in PERCENTILES),
    *(Calibration("mse"), Calibration("moving_average")),
)
ODD_RATIO = 3.0  # above it a scale does not follow the method
MAX_ODD_RATIO = 64.0  # weights close to zero may have any scale, set for their biases
SIMILAR_RATIO, EXACT_RATIO = 1.25, 1.02
MIN_GRIDS = 2  # fewer grids do not identify a method
OUTLIER_DIVISOR = 5  # one in so many scales may be an outlier


class InferredMethod(NamedTuple):
    """`fresh` are the grids that the method derives, `ratios` the actual scales over theirs, both
    by calibration node. `by` are the nodes that identified the method; `is_exact`: their values
    are those that the method was applied to."""

    method: Method
    fresh: Mapping[str, CalibrationNode]
    ratios: Mapping[str, float]
    by: frozenset[str] = frozenset()
    is_exact: bool = False

    def is_all(self, names: Collection[str], allowed: float) -> bool:
        """Whether all ratios are 1 within `allowed`, except for a few outliers."""
        return len(names) >= MIN_GRIDS and self.off(names, allowed) <= len(names) // OUTLIER_DIVISOR

    def off(self, names: Collection[str], allowed: float) -> int:
        return sum(not 1 / allowed < self.ratios[name] < allowed for name in names)

    @property
    def odd(self) -> list[str]:
        return [
            name for name, ratio in self.ratios.items() if ratio >= ODD_RATIO and name in self.by
        ]


def infer_method(
    model: ModelUnderTest, names: Collection[str], sure: Collection[str]
) -> InferredMethod | None:
    """The method that explains the scales of the calibration nodes `names`; None if none does.

    All nodes are tried at EXACT_RATIO first, then the nodes in `sure`, whose values are known to
    be unclipped, at SIMILAR_RATIO. Raises GraphError.
    """
    real = model.real
    roots = _roots(real, model)
    if len(roots.keys() & set(names)) < MIN_GRIDS:
        return None
    statistics = observe(real, model.samples, model.operators)
    nodes = [node for node in model.nodes if roots.get(node.name) in statistics.tensors]
    candidates = [
        _candidate(calibration, real, nodes, roots, statistics) for calibration in METHODS
    ]
    for trusted, allowed in ((names, EXACT_RATIO), (sure, SIMILAR_RATIO)):
        by = frozenset(node.name for node in nodes).intersection(trusted)
        best = min(
            candidates, key=lambda node: (node.off(by, EXACT_RATIO), node.off(by, SIMILAR_RATIO))
        )
        if best.is_all(by, allowed):
            return best._replace(by=by, is_exact=best.is_all(by, EXACT_RATIO))
    return None


def odd_weights(every: Mapping[str, Fit]) -> list[str]:
    """The weights with an ODD_RATIO scale in a model whose other weights have exact max scales.
    Weights are constants, so no sample can mislead this check."""
    reaches = {name: fit.reach for name, fit in every.items() if fit.fresh.kind == "weight"}
    off = sum(not 1 / EXACT_RATIO < reach < EXACT_RATIO for reach in reaches.values())
    is_all = len(reaches) >= MIN_GRIDS and off <= len(reaches) // OUTLIER_DIVISOR
    return [
        name for name, reach in reaches.items() if is_all and ODD_RATIO <= reach < MAX_ODD_RATIO
    ]


def _roots(real: Graph, model: ModelUnderTest) -> dict[str, str]:
    """Calibration node -> the observed tensor its scale was calibrated on; image inputs, whose
    scales are fixed, are left out."""
    fixed, values = images(model.calibrated), real.values()
    return {
        node.name: str(source_tensor(values[node.tensor]).name)
        for node in model.nodes
        if node.kind == "activation" and node.scale.size == 1
        if node.tensor in values and node.tensor not in fixed
    }


def _candidate(
    calibration: Calibration,
    real: Graph,
    nodes: Sequence[CalibrationNode],
    roots: Mapping[str, str],
    statistics: Statistics,
) -> InferredMethod:
    thresholds = ranges(real, statistics, calibration, all(map(is_centred, nodes)))
    wide = int16_ranges(real, statistics)
    fresh: dict[str, CalibrationNode] = {}
    for node in nodes:
        is_wide = node.zero_point.dtype.itemsize > 1  # no method clips int16
        low, high = (wide if is_wide else thresholds)[roots[node.name]]
        fresh[node.name] = fitted_grid(node, np.array([low]), np.array([high]))
    ratios = {node.name: float(node.scale.item() / fresh[node.name].scale.item()) for node in nodes}
    return InferredMethod(calibration.method, fresh, ratios)
