"""Suggestions: YAML that brings a broken build closer to its float model, tried first.

A trial runs the model in float with Q/DQ over the held-out samples: with `migrate` if the channels
of a self-gated activation starve, with another calibration method if a grid of the node does not
fit, then with the node in int16, then on the CPU. Its figure is the cosine of the worst output.
Trials skip adaptive rounding and bias correction, which take minutes. The ranges of a rescaled
model come from at most MAX_RANGE_SAMPLES.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from npumake.custom.operators import Operators
from npumake.data.samples import Samples, evenly_spaced, made_up
from npumake.dialects.advice import NATIVE, Wording
from npumake.errors import GraphError, ProjectError
from npumake.graph import Graph
from npumake.project.precision import Type
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.channel_imbalance import uneven_tensors
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import MIGRATE, rescale_factors
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.correction.smoothquant import passes_gates
from npumake.quant.precision.precision_candidates import Promoted, candidates, promoted, section
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.search.evaluator import RescaledModel, refit_recipe
from npumake.quant.search.holdout import MIN_HOLDOUT_SPLIT, holdout_samples
from npumake.quant.search.methods import ranges_by_method
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import MIN_GAIN
from npumake.quant.search.type_judge import JudgedModel
from npumake.targets.target import Target

MAX_RANGE_SAMPLES = 32
PROMOTIONS: tuple[Promoted, ...] = ("int16", "cpu")


@dataclass(frozen=True)
class CalibrationInputs:
    """The inputs of a calibrated graph; `statistics` are of `graph` before rescaling."""

    graph: Graph
    statistics: Statistics
    recipe: Recipe
    samples: Samples
    target: Target
    operators: Operators
    calibration: Calibration
    quantization: Quantization
    words: Wording = NATIVE

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to try: a model with scales of its own keeps them."""
        return self.recipe.method == LOAD or not self.samples or made_up(self.samples)

    @property
    def search(self) -> str:
        """YAML for a search, which takes minutes and is not tried here; empty if configured
        already."""
        return "" if self.is_fixed else self.words.search(self.calibration)


class Remedy(NamedTuple):
    """The YAML, and the worst output's cosine without it and with it."""

    yaml: str
    before: float
    after: float


class _Trial(NamedTuple):
    yaml: str
    recipe: Recipe
    quantization: Quantization


def remedied(inputs: CalibrationInputs, node: str, is_misfit: bool, enough: float) -> Remedy | None:
    """The first trial whose cosine reaches `enough`, else the best; None if no trial recovers
    MIN_GAIN of the loss."""
    if inputs.is_fixed:
        return None
    model = _judged_model(inputs)
    before = _cosine(model, inputs.recipe, inputs.quantization)
    best = Remedy("", before, 1.0 - (1.0 - before) * (1.0 - MIN_GAIN))
    for trial in _trials(inputs, node, is_misfit):
        after = _cosine(model, trial.recipe, trial.quantization)
        if after > best.after:
            best = Remedy(trial.yaml, before, after)
        if best.yaml and best.after >= enough:
            break
    return best if best.yaml else None


def _trials(inputs: CalibrationInputs, node: str, is_misfit: bool) -> Iterator[_Trial]:
    yield from _migrated(inputs)
    if is_misfit:
        yield from _methods(inputs)
    own = inputs.quantization
    for kind in PROMOTIONS:
        if node in _promotable(inputs, kind):
            candidate = promoted(inputs.graph, inputs.target, own, [node], kind)
            if inputs.words.whole_layers:
                candidate = _in_whole_layers(candidate, own)
            line = inputs.words.line("quantization", section(candidate), section(own))
            yield from [_Trial(line, inputs.recipe, candidate)] if line else []


def _in_whole_layers(candidate: Quantization, own: Quantization) -> Quantization:
    """The candidate, with all inputs and outputs of the changed layers in int16 too."""
    around: dict[str, Type] = {name: "int16" for name in candidate.layers if name not in own.layers}
    if not around:
        return candidate
    rules = candidate.types if isinstance(candidate.types, tuple) else (candidate.types,)
    return replace(candidate, types=(*rules, around), layers=own.layers)


def _migrated(inputs: CalibrationInputs) -> Iterator[_Trial]:
    graph, statistics, own = inputs.graph, inputs.statistics, inputs.quantization
    weights = with_scheme(inputs.target, own).weights
    line = inputs.words.line("quantization", {**section(own), MIGRATE: True}, section(own))
    uneven = uneven_tensors(graph, statistics)
    is_open = line and own.migrate is None and not inputs.recipe.factors
    if not is_open or not passes_gates(graph, weights, uneven):
        return
    factors = rescale_factors(
        graph, (MIGRATE,), inputs.samples, weights, inputs.operators, statistics
    )
    real = rescaled(graph, factors)
    base = RescaledModel(real, _observed(inputs, real), factors)
    recipe = refit_recipe(inputs.recipe, base, inputs.calibration)
    yield _Trial(line, recipe, replace(own, migrate=True))


def _methods(inputs: CalibrationInputs) -> Iterator[_Trial]:
    recipe, real = inputs.recipe, rescaled(inputs.graph, inputs.recipe.factors)
    statistics = inputs.statistics
    if recipe.factors:  # the tensors are not those that were measured
        statistics = _observed(inputs, real)
    # A search may have chosen grids that the method alone would not.
    own = recipe.symmetric == inputs.target.activations.symmetric
    grids = {} if own else {"symmetric": recipe.symmetric}
    current = {"method": inputs.calibration.method}
    for method in inputs.words.methods:
        trial = replace(inputs.calibration, method=method)
        ranges = ranges_by_method(real, statistics, trial, recipe.symmetric)
        candidate = replace(ranges, factors=recipe.factors, wide=recipe.wide)
        line = inputs.words.line("calibration", {"method": method, **grids}, current)
        yield from [_Trial(line, candidate, inputs.quantization)] if line else []


def _observed(inputs: CalibrationInputs, real: Graph) -> Statistics:
    few = evenly_spaced(inputs.samples, MAX_RANGE_SAMPLES)
    return observe(real, few, inputs.operators)


def _judged_model(inputs: CalibrationInputs) -> JudgedModel:
    """The float model on the first of the held-out samples."""
    numbers = holdout_samples(len(inputs.samples))[: MIN_HOLDOUT_SPLIT - 1]
    few = inputs.samples.subset(numbers)
    return JudgedModel(inputs.graph, few, inputs.target, inputs.operators)


def _cosine(model: JudgedModel, recipe: Recipe, quantization: Quantization) -> float:
    """The worst output's cosine; -1 if the chip refuses the change."""
    try:
        return model.scored(replace(recipe, switches=()), quantization)[1].cosine
    except (GraphError, ProjectError):
        return -1.0


def _promotable(inputs: CalibrationInputs, kind: Promoted) -> dict[str, int]:
    try:
        return candidates(inputs.graph, inputs.target, inputs.quantization, kind)
    except ProjectError:  # the chip has no higher precision
        return {}
