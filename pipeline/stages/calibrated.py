"""calibrated: the float graph with the range of every tensor in its Q/DQ nodes.

recipe → range → grid of the target → Q/DQ; weights stay float
method `load`: the Q/DQ that the model carries, completed
"""

from __future__ import annotations

from pipeline.graph import Graph
from pipeline.quant.loaded import LOAD, with_own_grids
from pipeline.quant.recipe import Recipe, calibrated_with
from pipeline.targets.target import Target


def calibrated(optimized_float: Graph, recipe: Recipe, target: Target) -> Graph:
    if recipe.method == LOAD:
        return with_own_grids(optimized_float, target)
    return calibrated_with(optimized_float, recipe, target)
