"""comparison: how close every node stays to the float model, over all samples.

optimized_float in float · calibrated in float with Q/DQ · quantized in exact integers
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.debug.compare import compare
from pipeline.debug.compared import Comparison
from pipeline.graph import Graph
from pipeline.progress import track
from pipeline.project.files import SourceFiles
from pipeline.quant.recipe import Recipe
from pipeline.quant.rescale import rescaled
from pipeline.targets.target import Target


def comparison(
    optimized_float: Graph,
    recipe: Recipe,
    calibrated: Graph,
    quantized: Graph,
    samples: Samples,
    target: Target,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
) -> Comparison:
    operators = declared(custom_operators, sources)
    feeds = track(samples, "comparison", len(samples))
    real = rescaled(optimized_float, recipe.factors)  # its tensors are those that have the grids
    return compare(real, calibrated, quantized, feeds, target, operators)
