"""statistics: what every tensor did over all samples, for any calibration method to read.

Its own stage, so that another method or percentile costs no inference.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.quant.calibration.observe import observe
from pipeline.quant.calibration.statistics import Statistics


def statistics(
    optimized_float: Graph,
    samples: Samples,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
) -> Statistics:
    return observe(optimized_float, samples, declared(custom_operators, sources))
