"""optimized_float: the same numbers with fewer nodes.

Constants folded, BatchNormalization and biases absorbed, no-ops and dead code gone: what is left
is what a chip would compute, still in float. The order of the passes is npumake.passes.PASSES.
"""

from __future__ import annotations

from npumake.graph import Graph
from npumake.passes import optimized


def optimized_float(original_float: Graph) -> Graph:
    return optimized(original_float)
