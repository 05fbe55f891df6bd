"""calibrated: the float graph with the range of every tensor in its Q/DQ nodes.

statistics → threshold, by method → range → grid of its type → Q/DQ; weights stay float
method `load`: the Q/DQ that the model carries, completed
"""

from __future__ import annotations

from pipeline.graph import Graph
from pipeline.project.sections import Calibration, Quantization
from pipeline.quant.images import images
from pipeline.quant.laid import grids_of, grids_of_image
from pipeline.quant.loaded import LOAD, check_method, check_nothing_asked, with_own_grids
from pipeline.quant.qdq import DEFAULT, with_qdq
from pipeline.quant.ranges import ranges
from pipeline.quant.schemes import with_scheme
from pipeline.quant.statistics import Statistics
from pipeline.targets.target import Target


def calibrated(
    optimized_float: Graph,
    statistics: Statistics,
    calibration: Calibration,
    target: Target,
    quantization: Quantization = DEFAULT,
) -> Graph:
    check_method(optimized_float, calibration)
    if calibration.method == LOAD:
        check_nothing_asked(quantization)
        return with_own_grids(optimized_float, target)
    target = with_scheme(target, quantization.scheme)
    found = ranges(optimized_float, statistics, calibration)
    grids = {name: grids_of(*found[name], target) for name in found}
    grids |= {name: grids_of_image(target) for name in images(optimized_float)}
    return with_qdq(optimized_float, grids, target, quantization)
