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
from npumake.quant.search.evaluator import MIN_HOLDOUT_SPLIT, holdout_samples
from npumake.quant.search.methods import ranges_by_method
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import MIN_GAIN
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


def remedied(making: CalibrationInputs, node: str, is_misfit: bool, enough: float) -> Remedy | None:
    """What mends most, or the first that brings the cosine to `enough`; None where nothing gives
    back MIN_GAIN of what is lost."""
    if making.is_fixed:
        return None
    before = _cosine(making, making.recipe, making.quantization)
    best = Remedy("", before, 1.0 - (1.0 - before) * (1.0 - MIN_GAIN))
    for trial in _trials(making, node, is_misfit):
        after = _cosine(making, trial.recipe, trial.quantization)
        if after > best.after:
            best = Remedy(trial.yaml, before, after)
        if best.yaml and best.after >= enough:
            break
    return best if best.yaml else None


def _trials(making: CalibrationInputs, node: str, is_misfit: bool) -> Iterator[_Trial]:
    if is_misfit:
        yield from _methods(making)
    own = making.quantization
    for kind in KINDS:
        if node in _known(making, kind):
            asked = promoted(making.graph, making.target, own, [node], kind)
            if making.words.whole_layers:
                asked = _in_whole_layers(asked, own)
            line = making.words.line("quantization", section(asked), section(own))
            yield from [_Trial(line, making.recipe, asked)] if line else []


def _in_whole_layers(asked: Quantization, own: Quantization) -> Quantization:
    """The same, and all that the layers around read and make is int16 with it."""
    around: dict[str, Type] = {name: "int16" for name in asked.layers if name not in own.layers}
    if not around:
        return asked
    rules = asked.types if isinstance(asked.types, tuple) else (asked.types,)
    return replace(asked, types=(*rules, around), layers=own.layers)


def _methods(making: CalibrationInputs) -> Iterator[_Trial]:
    recipe, real = making.recipe, rescaled(making.graph, making.recipe.factors)
    statistics = making.statistics
    if recipe.factors:  # other tensors than those that were measured
        statistics = observe(real, making.samples, making.operators)
    # A search chose the grids that a method alone would not have.
    own = recipe.symmetric == making.target.activations.symmetric
    grids = {} if own else {"symmetric": recipe.symmetric}
    said = {"method": making.calibration.method}
    for method in making.words.methods:
        asked = replace(making.calibration, method=method)
        made = ranges_by_method(real, statistics, asked, recipe.symmetric)
        kept = replace(made, factors=recipe.factors, wide=recipe.wide)
        line = making.words.line("calibration", {"method": method, **grids}, said)
        yield from [_Trial(line, kept, making.quantization)] if line else []


def _cosine(making: CalibrationInputs, recipe: Recipe, quantization: Quantization) -> float:
    """What the chip refuses is no remedy."""
    numbers = holdout_samples(len(making.samples))[: MIN_HOLDOUT_SPLIT - 1]
    names = tuple(making.samples.names[number] for number in numbers)
    few = Samples(names, lambda index: making.samples.read(numbers[index]))
    plainly = replace(recipe, switches=())
    try:
        score = judge(making.graph, plainly, few, making.target, making.operators)
        return score(quantization).cosine
    except (GraphError, ProjectError):
        return -1.0


def _known(making: CalibrationInputs, kind: Promoted) -> dict[str, int]:
    try:
        return candidates(making.graph, making.target, making.quantization, kind)
    except ProjectError:  # the chip has nothing to promote to
        return {}
