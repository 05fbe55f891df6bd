"""statistics: what every tensor did over all samples, for any calibration method to read.

Its own stage, so that another method or percentile costs no inference. Where a number is not finite
the node that makes it so is looked for, of all nodes, not of those alone that are observed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.debug.finite import source_of_infinite
from pipeline.errors import StageError
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import CodeFiles
from pipeline.quant.calibration.observe import observe
from pipeline.quant.calibration.statistics import Statistics
from pipeline.quant.calibration.tally import NotFiniteError


def statistics(
    optimized_float: Graph,
    samples: Samples,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
) -> Statistics:
    operators = declared(custom_operators, sources)
    try:
        return observe(optimized_float, samples, operators)
    except NotFiniteError as error:
        source = source_of_infinite(optimized_float, samples, operators)
        if source is None:  # not twice
            raise
        raise StageError(str(source), error.where, source.hint) from error
