"""calibrated: the float graph with the range of every tensor in its Q/DQ nodes.

    recipe → channels rescaled → range → grid of its type → Q/DQ → weights and biases corrected
           → bias behind a MatMul into a Gemm
    method `load`: the Q/DQ of the model, completed

Weights stay float. Samples are read only for rounding and bias correction.
"""

from __future__ import annotations

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.detection.notes import mark_origin
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.correction.bias_correction import FloatLayers
from npumake.quant.correction.corrections import apply_corrections
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.form import in_form
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.brought_grids import LOAD, with_own_grids
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.qdq.integers import store_wide_biases
from npumake.quant.qdq.product_bias import product_bias
from npumake.quant.search.methods import calibrated_with
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target


def calibrated(
    optimized_float: Graph,
    recipe: Recipe,
    samples: Samples,
    target: Target,
    operators: Operators = NO_OPERATORS,
    quantization: Quantization = DEFAULT,
) -> Graph:
    if recipe.method == LOAD:
        return with_own_grids(optimized_float, target, quantization)
    real = rescaled(in_form(optimized_float, target), recipe.factors)
    graph = calibrated_with(real, recipe, target, quantization)
    weights = with_scheme(target, quantization).weights
    graph = apply_corrections(
        FloatLayers(real, operators), graph, recipe.switches, samples, weights
    )
    product_bias(graph, target)
    mark_origin(graph, samples.origin)
    return store_wide_biases(graph)
