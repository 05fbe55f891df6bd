"""The figures the debugger ranks by, under the names of the vendors' tools; of several outputs that
of the worst."""

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
        """NaN where one is."""
        figures = [self.of(agreement) for agreement in sums]
        return math.nan if any(map(math.isnan, figures)) else self.worst(figures)

    def loss(self, figure: float) -> float:
        """The larger, the worse; what is no number is worst."""
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
    """Raises ProjectError for one that nobody knows."""
    if name not in METRICS:
        raise ProjectError(f"unknown metric `{name}`", hint=did_you_mean(name, METRICS))
    return METRICS[name]
