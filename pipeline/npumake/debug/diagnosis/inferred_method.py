"""Methods: which of them chose the grids of a model, and which grids it would not have chosen.

    ratio    step of a grid / step of the one that the method chooses for the numbers on it

The method that has few ratios other than one chose the grids. One whose ratio is ODD was then not
chosen at all: that a grid is twice as wide as its numbers says nothing, that all others are as kl
has them and this one has four times that says all.

Other samples, and weights rounded since, let the ratios stray as far as ALIKE; where they are EXACT
the numbers are those that the grids were chosen for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.borders.images import images
from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.diagnosis.range_fit import Fit, fitted_grid, is_centred
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import Graph
from npumake.project.sections import Calibration, Method
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import int16_ranges, ranges
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.placement import root
from npumake.quant.search.methods import PERCENTILE, PERCENTILES

METHODS: tuple[Calibration, ...] = (
    *(Calibration("kl"), Calibration("max")),
    *(Calibration(PERCENTILE, share) for share in PERCENTILES),
    *(Calibration("mse"), Calibration("moving_average")),
)
ODD_RATIO = 3.0
MAX_ODD_RATIO = (
    64.0  # weights that are all but zero may have any grid, for the sake of their biases
)
SIMILAR_RATIO, EXACT_RATIO = 1.25, 1.02
MIN_GRIDS = 2  # grids that say which method it was
OUTLIER_DIVISOR = 5  # one of so many may be another


class InferredMethod(NamedTuple):
    """`fresh` are the grids that the method chooses, `ratios` are to them: both by calibration
    node. `by` are those that told it, `is_exact` where their numbers are those it was used on."""

    method: Method
    fresh: Mapping[str, CalibrationNode]
    ratios: Mapping[str, float]
    by: frozenset[str] = frozenset()
    is_exact: bool = False

    def is_all(self, names: Collection[str], allowed: float) -> bool:
        """Whether the ratios are one, but for few."""
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
    """By which method the grids of these calibration nodes were; None where none explains them.
    Where not exactly all, those that are `sure` to hold the numbers they were chosen for tell it.
    Raises GraphError."""
    real = without(model.calibrated)
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
    """Of all fits those of weights that lie on ODD grids, where those of others just hold them: no
    sample tells it, so none can be wrong."""
    reaches = {name: fit.reach for name, fit in every.items() if fit.fresh.kind == "weight"}
    off = sum(not 1 / EXACT_RATIO < reach < EXACT_RATIO for reach in reaches.values())
    is_all = len(reaches) >= MIN_GRIDS and off <= len(reaches) // OUTLIER_DIVISOR
    return [
        name for name, reach in reaches.items() if is_all and ODD_RATIO <= reach < MAX_ODD_RATIO
    ]


def _roots(real: Graph, model: ModelUnderTest) -> dict[str, str]:
    """The observed tensor on each grid that was chosen; that of an image never is."""
    fixed, values = images(model.calibrated), real.values()
    return {
        node.name: str(root(values[node.tensor]).name)
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
        is_wide = node.zero_point.dtype.itemsize > 1  # no method cuts off int16
        low, high = (wide if is_wide else thresholds)[roots[node.name]]
        fresh[node.name] = fitted_grid(node, np.array([low]), np.array([high]))
    ratios = {node.name: float(node.scale.item() / fresh[node.name].scale.item()) for node in nodes}
    return InferredMethod(calibration.method, fresh, ratios)
