"""recipe: the range of every tensor by the calibration method, and the trials of a search.

a method      statistics → ranges, the model is not run
default       the best of several methods by the outputs of holdout samples; even channels in front
              of depthwise layers, adaptively rounded weights and corrected biases if they help;
              int16 outputs if 8 bits tie the top classes
modelwise     the search that hb_mapper and hb_compile call `default` (search.modelwise)
mix           for every tensor the method with the least noise
output_mix    likewise, by the noise at the model's outputs; the model is run
load          nothing: the model carries its scales, or runs only in floats
recipe: best  the best method, and the switches of `quantization` that help

Switches that rescale the float model change its ranges; then, and for trials, samples are run.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples, made_up
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, may_have_int16
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import (
    EVEN,
    MIGRATE,
    WIDENING,
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
    left_open,
    switched_on,
)
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.qdq.brought_grids import (
    LOAD,
    carries_grids,
    check_float,
    check_method,
    check_only_defaults,
)
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.candidates import (
    SYMMETRIC,
    complete_recipe,
    with_even_channels,
    with_gated_candidates,
    with_int16_candidates,
)
from npumake.quant.search.evaluator import Evaluator, RescaledModel, refit_recipe, rescale_model
from npumake.quant.search.figures import evaluator_of
from npumake.quant.search.methods import candidates, plain_recipe
from npumake.quant.search.modelwise import MODELWISE, modelwise
from npumake.quant.search.output_mix import output_mix, with_choices
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import best_method, best_switches, with_trials_beyond
from npumake.targets.target import Target

# The switches that `default` tries behind EVEN; int16 outputs only for argmax ties.
DEFAULT_SWITCHES = (WIDENING_ANSWERS, "round_weights", "bias_correction")
# Tried with the best methods, because it gains most and costs least; once more at the end if it
# did not help: the remaining error may be a shift.
FINALIST_SWITCH = "bias_correction"
# Tried first: coarse outputs hide every other gain, and sensitive tensors come before channels are
# equalized at the cost of the weights. The outputs come again, since sensitive tensors may have
# hidden their gain.
EARLY_SWITCHES = (WIDENING_ANSWERS, WIDENING_SENSITIVE, WIDENING_ANSWERS)


def recipe(
    optimized_float: Graph,
    statistics: Statistics,
    samples: Samples,
    calibration: Calibration,
    target: Target,
    operators: Operators = NO_OPERATORS,
    quantization: Quantization = DEFAULT,
) -> Recipe:
    check_method(optimized_float, calibration)
    if carries_grids(optimized_float):
        check_only_defaults(quantization)
        _refuse_search(calibration)
        return Recipe(LOAD, target.activations.symmetric, {})
    _check_per_channel(calibration, target)
    if calibration.method == LOAD:
        check_float(optimized_float, quantization, target)
    evaluator = evaluator_of(optimized_float, samples, calibration, target, operators, quantization)
    calibration = evaluator.calibration
    if made_up(samples) and (calibration.method != "skip" or calibration.recipe == "best"):
        hint = "add  data: {'*': {files: ...}}, or  method: skip  only for timing"
        raise ProjectError("no samples to calibrate with", Route("calibration.method"), hint)
    return _recipe_of(evaluator, statistics, _schemes(calibration, evaluator.target))


def _recipe_of(evaluator: Evaluator, statistics: Statistics, schemes: Sequence[bool]) -> Recipe:
    calibration, graph = evaluator.calibration, evaluator.graph
    switches = switched_on(evaluator.quantization, calibration)
    if calibration.method == MODELWISE and calibration.recipe == "plain":
        return modelwise(evaluator, statistics, switches)
    as_it_is = RescaledModel(graph, statistics.of(observed_tensors(graph)), {})
    if not _is_search(calibration):
        base = rescale_model(evaluator, evaluator.samples, as_it_is, switches)
        initial = plain_recipe(base.graph, base.statistics, calibration, schemes[0])
        initial = with_choices(initial, base, evaluator)
        return complete_recipe(initial, switches, base, evaluator)
    best = _searched(evaluator, switches, schemes)
    base = rescale_model(evaluator, evaluator.samples, as_it_is, best.switches)
    return refit_recipe(best, base, calibration)


def _searched(evaluator: Evaluator, switches: tuple[str, ...], schemes: Sequence[bool]) -> Recipe:
    """The best recipe over the calibration samples."""
    calibration, is_open = evaluator.calibration, left_open(evaluator.quantization)
    rejected: tuple[Recipe, ...] = ()
    if EVEN in is_open:
        switches, rejected = with_even_channels(switches, schemes[0], evaluator)
    base = evaluator.rescaled_model(switches)
    every = [*candidates(base.graph, base.statistics, calibration, schemes[0])]
    if calibration.recipe == "best":
        every.append(output_mix(base, evaluator, schemes[0]))
    tried = [complete_recipe(candidate, switches, base, evaluator) for candidate in every]
    names = _searched_switches(evaluator)
    if MIGRATE in is_open:
        tried, starved = with_gated_candidates(tried, evaluator)
        rejected = (*rejected, *starved)
    if WIDENING in names:
        tried = with_int16_candidates(tried, base, evaluator)
    scheme = tuple(SYMMETRIC for _ in schemes[1:])
    finalist = tuple(name for name in names if name == FINALIST_SWITCH)
    early = [name for name in EARLY_SWITCHES if name in names]
    late = [name for name in names if name not in (WIDENING, *EARLY_SWITCHES)]
    method = best_method(tried, evaluator, scheme, finalist, rejected)
    best = best_switches(method, [*early, *late], evaluator).recipe
    return with_trials_beyond(best, evaluator) if may_have_int16(base.graph) else best


def _searched_switches(evaluator: Evaluator) -> tuple[str, ...]:
    """The switches that are tried one after another, in order; EVEN is tried before the methods."""
    names = tuple(name for name in left_open(evaluator.quantization) if name != EVEN)
    if evaluator.calibration.recipe == "plain":
        names = tuple(name for name in names if name in DEFAULT_SWITCHES)
    if not may_have_int16(evaluator.graph) or evaluator.int16_limit == 0.0:
        names = tuple(name for name in names if name not in (WIDENING, *EARLY_SWITCHES))
    return names


def _is_search(calibration: Calibration) -> bool:
    return calibration.recipe == "best" or calibration.method == "default"


def _schemes(calibration: Calibration, target: Target) -> tuple[bool, ...]:
    """Whether grids are symmetric: the chip's default, or both ways of a search. Asymmetric comes
    first, with more codes for a ReLU."""
    chip = target.activations
    if calibration.symmetric is None:
        tries_both = chip.may_be_asymmetric and _is_search(calibration)
        return (False, True) if tries_both else (chip.symmetric,)
    if not calibration.symmetric and not chip.may_be_asymmetric:
        message = f"{target.name} has no zero points: its grids are symmetric"
        raise ProjectError(message, Route("calibration.symmetric"))
    return (calibration.symmetric,)


def _check_per_channel(calibration: Calibration, target: Target) -> None:
    if calibration.per_channel and not target.activations.per_channel:
        message = f"{target.name} has one scale for all channels of a feature map"
        hint = "quantization: {migrate: true}  evens channels out where that helps"
        raise ProjectError(message, Route("calibration.per_channel"), hint)


def _refuse_search(calibration: Calibration) -> None:
    if calibration.recipe == "best":
        message = "the model carries its own scales, there is no best recipe to find"
        raise ProjectError(message, Route("calibration.recipe"))
