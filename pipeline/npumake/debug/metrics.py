"""The metrics that the debugger ranks by, with the vendors' names; the worst output counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npumake.errors import ProjectError, did_you_mean
from npumake.kernels.measure import Agreement


class RankingMetric(NamedTuple):
    of: Callable[[Agreement], float]
    worst: Callable[[Sequence[float]], float]  # min or max

    def figure(self, sums: Sequence[Agreement]) -> float:
        """The figure of the worst output; NaN if any is."""
        figures = [self.of(agreement) for agreement in sums]
        return math.nan if any(map(math.isnan, figures)) else self.worst(figures)

    def loss(self, figure: float) -> float:
        """The figure as a loss: larger is worse, NaN is worst."""
        if math.isnan(figure):
            return math.inf
        return -figure if self.worst is min else figure


METRICS = {
    "cosine-similarity": RankingMetric(lambda sums: sums.cosine, min),
    "mse": RankingMetric(lambda sums: sums.mse, max),
    "mre": RankingMetric(lambda sums: sums.mre, max),
    "sqnr": RankingMetric(lambda sums: sums.sqnr_db, min),
    "chebyshev": RankingMetric(lambda sums: sums.chebyshev, max),
}


def metric(name: str) -> RankingMetric:
    """The metric of this name. Raises ProjectError for an unknown one."""
    if name not in METRICS:
        raise ProjectError(f"unknown metric `{name}`", hint=did_you_mean(name, METRICS))
    return METRICS[name]
