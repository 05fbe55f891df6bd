"""recipe: the range of every tensor, by the calibration's method, and what was tried to find it.

a method      statistics → ranges, nothing is run
default       the best of several methods, by the outputs of the samples held out
mix           for every tensor the method that leaves the least noise
load          nothing to decide: the model carries its scales, or runs in floats alone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples, made_up
from pipeline.errors import ProjectError, Route
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Calibration, Quantization
from pipeline.quant.loaded import (
    LOAD,
    carries_grids,
    check_float,
    check_method,
    check_nothing_asked,
)
from pipeline.quant.qdq import DEFAULT
from pipeline.quant.recipe import Recipe
from pipeline.quant.schemes import with_scheme
from pipeline.quant.search import best, candidates, mixed, plain
from pipeline.quant.statistics import Statistics
from pipeline.targets.target import Target


def recipe(
    optimized_float: Graph,
    statistics: Statistics,
    samples: Samples,
    calibration: Calibration,
    target: Target,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
    quantization: Quantization = DEFAULT,
) -> Recipe:
    check_method(optimized_float, calibration)
    if carries_grids(optimized_float):
        check_nothing_asked(quantization)
        return Recipe(LOAD, target.activations.symmetric, {})
    if calibration.method == LOAD:
        check_float(optimized_float, quantization, target)
        calibration = replace(calibration, method="skip")
    if made_up(samples) and calibration.method != "skip":
        hint = "add  data: {'*': {files: ...}}, or  method: skip  for timing alone"
        raise ProjectError("no samples to calibrate with", Route("calibration.method"), hint)
    schemes = _schemes(calibration, with_scheme(target, quantization.scheme))
    if calibration.method == "mix":
        return mixed(optimized_float, statistics, calibration, schemes[0])
    if calibration.method != "default":
        return plain(optimized_float, statistics, calibration, schemes[0])
    tried = list(candidates(optimized_float, statistics, calibration, schemes))
    operators = declared(custom_operators, sources)
    return best(tried, optimized_float, samples, operators, target, quantization)


def _schemes(calibration: Calibration, target: Target) -> tuple[bool, ...]:
    """Whether grids may be symmetric, the chip's own way first; what `default` chooses from."""
    own = target.activations.symmetric
    if calibration.symmetric is None:
        return (own,) if own else (own, True)
    if own and not calibration.symmetric:
        what = f"{target.name} has no zero points: its grids are symmetric"
        raise ProjectError(what, Route("calibration.symmetric"))
    return (calibration.symmetric,)
