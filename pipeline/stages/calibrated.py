"""calibrated: the float graph with the range of every tensor in its Q/DQ nodes.

statistics → threshold, by method → range → grid of the target → Q/DQ; weights stay float
method `load`: the Q/DQ that the model carries, completed
"""

from __future__ import annotations

from pipeline.graph import Graph
from pipeline.project.sections import Calibration
from pipeline.quant.grids import activation_grid, image_grid
from pipeline.quant.images import images
from pipeline.quant.loaded import LOAD, check_method, with_own_grids
from pipeline.quant.qdq import with_qdq
from pipeline.quant.ranges import ranges
from pipeline.quant.statistics import Statistics
from pipeline.targets.target import Target


def calibrated(
    optimized_float: Graph, statistics: Statistics, calibration: Calibration, target: Target
) -> Graph:
    check_method(optimized_float, calibration)
    if calibration.method == LOAD:
        return with_own_grids(optimized_float, target)
    scheme = target.activations
    found = ranges(optimized_float, statistics, calibration)
    grids = {name: activation_grid(*found[name], scheme) for name in found}
    grids |= {name: image_grid(scheme) for name in images(optimized_float)}
    return with_qdq(optimized_float, grids, target)
