"""optimized_float: the same numbers with fewer nodes.

Constants are folded, BatchNormalization and biases absorbed, no-ops and dead code removed. The
result is the computation of a chip, still in float. npumake.passes.PASSES has the order.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes import optimized


def optimized_float(original_float: Graph) -> Graph:
    return optimized(original_float)
