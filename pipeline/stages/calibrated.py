"""calibrated: the float graph with the range of every tensor in its Q/DQ nodes.

recipe → channels rescaled → range → grid of its type → Q/DQ → weights and biases recovered
method `load`: the Q/DQ that the model carries, completed

Weights stay float. Samples are read only where they are to be rounded or biases to be corrected.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.detection.notes import mark_origin
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import CodeFiles, Quantization
from pipeline.quant.precision.form import in_form
from pipeline.quant.precision.schemes import with_scheme
from pipeline.quant.qdq.insert import DEFAULT
from pipeline.quant.qdq.integers import store_wide_biases
from pipeline.quant.qdq.loaded import LOAD, with_own_grids
from pipeline.quant.recovery.rescale import rescaled
from pipeline.quant.recovery.switches import recovered
from pipeline.quant.search.methods import calibrated_with
from pipeline.quant.search.recipe import Recipe
from pipeline.targets.target import Target


def calibrated(
    optimized_float: Graph,
    recipe: Recipe,
    samples: Samples,
    target: Target,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
    quantization: Quantization = DEFAULT,
) -> Graph:
    if recipe.method == LOAD:
        return with_own_grids(optimized_float, target, quantization)
    real = rescaled(in_form(optimized_float, target), recipe.factors)
    made = calibrated_with(real, recipe, target, quantization)
    operators = declared(custom_operators, sources)
    weights = with_scheme(target, quantization).weights
    made = recovered(real, made, recipe.switches, samples, weights, operators)
    mark_origin(made, samples.origin)
    return store_wide_biases(made)
