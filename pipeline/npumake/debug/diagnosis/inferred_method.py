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
from npumake.debug.diagnosis.range_fit import Fit, holding, is_centred
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
ODD = 3.0
DEAD = 64.0  # weights that are all but zero may have any grid, for the sake of their biases
ALIKE, EXACT = 1.25, 1.02
FEWEST = 2  # grids that say which method it was
SHARE = 5  # one of so many may be another


class Chosen(NamedTuple):
    """`fresh` are the grids that the method chooses, `ratios` are to them: both by calibration
    node. `by` are those that told it, `is_exact` where their numbers are those it was used on."""

    method: Method
    fresh: Mapping[str, CalibrationNode]
    ratios: Mapping[str, float]
    by: frozenset[str] = frozenset()
    is_exact: bool = False

    def is_all(self, names: Collection[str], allowed: float) -> bool:
        """Whether the ratios are one, but for few."""
        return len(names) >= FEWEST and self.off(names, allowed) <= len(names) // SHARE

    def off(self, names: Collection[str], allowed: float) -> int:
        return sum(not 1 / allowed < self.ratios[name] < allowed for name in names)

    @property
    def odd(self) -> list[str]:
        return [name for name, ratio in self.ratios.items() if ratio >= ODD and name in self.by]


def chosen(patient: ModelUnderTest, names: Collection[str], sure: Collection[str]) -> Chosen | None:
    """By which method the grids of these calibration nodes were; None where none explains them.
    Where not exactly all, those that are `sure` to hold the numbers they were chosen for tell it.
    Raises GraphError."""
    real = without(patient.calibrated)
    roots = _roots(real, patient)
    if len(roots.keys() & set(names)) < FEWEST:
        return None
    statistics = observe(real, patient.samples, patient.operators)
    nodes = [one for one in patient.nodes if roots.get(one.name) in statistics.tensors]
    tried = [_chosen(said, real, nodes, roots, statistics) for said in METHODS]
    for told, allowed in ((names, EXACT), (sure, ALIKE)):
        by = frozenset(one.name for one in nodes).intersection(told)
        best = min(tried, key=lambda one: (one.off(by, EXACT), one.off(by, ALIKE)))
        if best.is_all(by, allowed):
            return best._replace(by=by, is_exact=best.is_all(by, EXACT))
    return None


def odd_weights(every: Mapping[str, Fit]) -> list[str]:
    """Of all fits those of weights that lie on ODD grids, where those of others just hold them: no
    sample tells it, so none can be wrong."""
    reaches = {name: fit.reach for name, fit in every.items() if fit.fresh.kind == "weight"}
    off = sum(not 1 / EXACT < reach < EXACT for reach in reaches.values())
    is_all = len(reaches) >= FEWEST and off <= len(reaches) // SHARE
    return [name for name, reach in reaches.items() if is_all and ODD <= reach < DEAD]


def _roots(real: Graph, patient: ModelUnderTest) -> dict[str, str]:
    """The observed tensor on each grid that was chosen; that of an image never is."""
    fixed, values = images(patient.calibrated), real.values()
    return {
        one.name: str(source_tensor(values[one.tensor]).name)
        for one in patient.nodes
        if one.kind == "activation" and one.scale.size == 1
        if one.tensor in values and one.tensor not in fixed
    }


def _chosen(
    said: Calibration,
    real: Graph,
    nodes: Sequence[CalibrationNode],
    roots: Mapping[str, str],
    statistics: Statistics,
) -> Chosen:
    found = ranges(real, statistics, said, all(map(is_centred, nodes)))
    wide = int16_ranges(real, statistics)
    fresh: dict[str, CalibrationNode] = {}
    for one in nodes:
        is_wide = one.zero_point.dtype.itemsize > 1  # no method cuts off int16
        low, high = (wide if is_wide else found)[roots[one.name]]
        fresh[one.name] = holding(one, np.array([low]), np.array([high]))
    ratios = {one.name: float(one.scale.item() / fresh[one.name].scale.item()) for one in nodes}
    return Chosen(said.method, fresh, ratios)
