"""Remedy: YAML that brings a broken build closer to its float model, tried before it is told.

A trial is the model in float with Q/DQ, over the samples held out: with the ranges of another
method where the grid of the node to blame does not fit, else with the node in int16, else on the
CPU. Its figure is the cosine of the answer that comes off worst. Weights are not rounded anew in a
trial and no bias is corrected, before or after: they follow what is quantized, and cost minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from npumake.custom.operators import Operators
from npumake.data.samples import Samples, made_up
from npumake.errors import GraphError, ProjectError
from npumake.graph import Graph
from npumake.project.precision import Type
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.precision_candidates import Promoted, candidates, promoted, section
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.search.evaluator import FEW, held_out
from npumake.quant.search.methods import plain
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import GAIN
from npumake.quant.search.type_judge import judge
from npumake.targets.advice import NATIVE, Words
from npumake.targets.target import Target

KINDS: tuple[Promoted, ...] = ("int16", "cpu")


@dataclass(frozen=True)
class CalibrationInputs:
    """What a calibrated graph is made of; `statistics` are those of `graph`, before it is
    rescaled."""

    graph: Graph
    statistics: Statistics
    recipe: Recipe
    samples: Samples
    target: Target
    operators: Operators
    calibration: Calibration
    quantization: Quantization
    words: Words = NATIVE

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to try: a model that brings its scales keeps them."""
        return self.recipe.method == LOAD or not self.samples or made_up(self.samples)

    @property
    def search(self) -> str:
        """YAML that asks for a search, minutes of it, so it is not tried here; empty where it says
        so already."""
        return "" if self.is_fixed else self.words.search(self.calibration)


class Remedy(NamedTuple):
    """The YAML, and the cosine without it and with it."""

    yaml: str
    before: float
    after: float


class _Trial(NamedTuple):
    yaml: str
    recipe: Recipe
    quantization: Quantization


def remedied(inputs: CalibrationInputs, node: str, is_misfit: bool, enough: float) -> Remedy | None:
    """What mends most, or the first that brings the cosine to `enough`; None where nothing gives
    back GAIN of what is lost."""
    if inputs.is_fixed:
        return None
    before = _cosine(inputs, inputs.recipe, inputs.quantization)
    best = Remedy("", before, 1.0 - (1.0 - before) * (1.0 - GAIN))
    for trial in _trials(inputs, node, is_misfit):
        after = _cosine(inputs, trial.recipe, trial.quantization)
        if after > best.after:
            best = Remedy(trial.yaml, before, after)
        if best.yaml and best.after >= enough:
            break
    return best if best.yaml else None


def _trials(inputs: CalibrationInputs, node: str, is_misfit: bool) -> Iterator[_Trial]:
    if is_misfit:
        yield from _methods(inputs)
    own = inputs.quantization
    for kind in KINDS:
        if node in _known(inputs, kind):
            candidate = promoted(inputs.graph, inputs.target, own, [node], kind)
            if inputs.words.whole_layers:
                candidate = _in_whole_layers(candidate, own)
            line = inputs.words.line("quantization", section(candidate), section(own))
            yield from [_Trial(line, inputs.recipe, candidate)] if line else []


def _in_whole_layers(candidate: Quantization, own: Quantization) -> Quantization:
    """The same, and all that the layers around read and make is int16 with it."""
    around: dict[str, Type] = {name: "int16" for name in candidate.layers if name not in own.layers}
    if not around:
        return candidate
    rules = candidate.types if isinstance(candidate.types, tuple) else (candidate.types,)
    return replace(candidate, types=(*rules, around), layers=own.layers)


def _methods(inputs: CalibrationInputs) -> Iterator[_Trial]:
    recipe, real = inputs.recipe, rescaled(inputs.graph, inputs.recipe.factors)
    statistics = inputs.statistics
    if recipe.factors:  # other tensors than those that were measured
        statistics = observe(real, inputs.samples, inputs.operators)
    # A search chose the grids that a method alone would not have.
    own = recipe.symmetric == inputs.target.activations.symmetric
    grids = {} if own else {"symmetric": recipe.symmetric}
    current = {"method": inputs.calibration.method}
    for method in inputs.words.methods:
        trial = replace(inputs.calibration, method=method)
        ranges = plain(real, statistics, trial, recipe.symmetric)
        candidate = replace(ranges, factors=recipe.factors, wide=recipe.wide)
        line = inputs.words.line("calibration", {"method": method, **grids}, current)
        yield from [_Trial(line, candidate, inputs.quantization)] if line else []


def _cosine(inputs: CalibrationInputs, recipe: Recipe, quantization: Quantization) -> float:
    """What the chip refuses is no remedy."""
    numbers = held_out(len(inputs.samples))[: FEW - 1]
    names = tuple(inputs.samples.names[number] for number in numbers)
    few = Samples(names, lambda index: inputs.samples.read(numbers[index]))
    plainly = replace(recipe, switches=())
    try:
        score = judge(inputs.graph, plainly, few, inputs.target, inputs.operators)
        return score(quantization).cosine
    except (GraphError, ProjectError):
        return -1.0


def _known(inputs: CalibrationInputs, kind: Promoted) -> dict[str, int]:
    try:
        return candidates(inputs.graph, inputs.target, inputs.quantization, kind)
    except ProjectError:  # the chip has nothing to promote to
        return {}
