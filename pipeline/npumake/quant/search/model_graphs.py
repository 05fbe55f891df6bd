"""The graphs of one model, from float to integers."""

from __future__ import annotations

from typing import NamedTuple

from npumake.graph import Graph
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.form import in_form
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target


class ModelGraphs(NamedTuple):
    """`trained` is the float model in the target's form. `real` is that model after rescaling: its
    tensors have the grids of the calibrated graph."""

    trained: Graph
    real: Graph
    calibrated: Graph
    quantized: Graph


def model_graphs(
    optimized_float: Graph, recipe: Recipe, calibrated: Graph, quantized: Graph, target: Target
) -> ModelGraphs:
    """The parameters are inputs of stages, by name."""
    trained = in_form(optimized_float, target)
    return ModelGraphs(trained, rescaled(trained, recipe.factors), calibrated, quantized)
