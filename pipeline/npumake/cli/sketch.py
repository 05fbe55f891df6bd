"""Estimates the cost of a model without calibration.

The cost of a program depends on shapes and types, not on ranges. Every tensor gets the same range,
and the program is lowered as in a build.
"""

from __future__ import annotations

from npumake.bundle.archive import Bundle
from npumake.data.samples import Samples
from npumake.digest import Json
from npumake.engine.lower import lowered
from npumake.graph import Graph
from npumake.perf.estimate import Estimate, estimate_bundle
from npumake.project.sections import Quantization
from npumake.quant.calibration.ranges import Range
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.recipe import Recipe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.targets.target import Target

SKETCH_RANGE = Range(-1.0, 1.0)
NO_SAMPLES = Samples((), lambda index: {})


def sketched(
    graph: Graph, target: Target, name: str, quantization: Quantization | None, inputs: Json
) -> Estimate | None:
    """The estimate for an optimized float graph; None for a target without a fitted model. `inputs`
    is the project's section. Raises PipelineError for a model that cannot be built."""
    if target.cost.fitted is None:
        return None
    recipe = Recipe(
        "max",
        target.activations.symmetric,
        dict.fromkeys(observed_tensors(graph), SKETCH_RANGE),
    )
    quantized_graph = quantized(
        calibrated(graph, recipe, NO_SAMPLES, target, quantization=quantization or DEFAULT),
        target,
    )
    program = lowered(quantized_graph, target.rounding, target.runnable)
    return estimate_bundle(name, Bundle(target.name, program, {"inputs": inputs}), target)
