"""statistics: activation statistics of every tensor over all samples, for all calibration methods.

It is a stage of its own, so another method or percentile costs no inference. For a non-finite value
the node that produces it is searched for among all nodes, not only the observed ones.
"""

from __future__ import annotations

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.debug.finite import source_of_infinite
from npumake.errors import StageError
from npumake.graph import Graph
from npumake.quant.calibration.minmax_observer import NotFiniteError
from npumake.quant.calibration.shards import observe_shards
from npumake.quant.calibration.statistics import Statistics


def statistics(
    optimized_float: Graph,
    samples: Samples,
    operators: Operators = NO_OPERATORS,
) -> Statistics:
    try:
        return observe_shards(optimized_float, samples, operators)
    except NotFiniteError as error:
        source = source_of_infinite(optimized_float, samples, operators)
        if source is None:  # not reproducible
            raise
        raise StageError(str(source), error.where, source.hint) from error
