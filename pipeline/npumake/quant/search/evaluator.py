"""Bench: where recipes are tried, on the samples held out.

A trial quantizes the model, which is run in float with Q/DQ; its figure is how close the answers
come to the float model's (search.closeness). An answer that is one distribution is taken
before its Softmax: of a thousand classes that leaves the few that the model is sure of, and over a
few samples their cosine is mostly chance. It is told beside the figure, and what loses far more of
it is not kept.

The figure is taken over the samples held out: every second, of many fewer, MOST of them, evenly
spaced; of fewer than FEW all. They are new to what is tried: no range, weight or bias follows them,
but others, at most SHOWN. A range that has seen a sample cuts nothing off it, and a recipe that has
every channel just fit its range looks the better for that, though what comes later does not fit. Of
what YuNet loses on ara240 by `max`, `migrate` gives back 28 % where the ranges know the samples,
and 4 % where they do not. What is chosen is then made of all samples.

Where those are fewer than MOST, the halves take folds: the recipe is made of the samples held out
too, and judged by the others, and the figure is taken over both folds. Ranges that follow eight
samples, or sixteen, may be lucky with as many others.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from npumake import digest
from npumake.custom.operators import Operators
from npumake.data.samples import Samples
from npumake.engine.float_session import float_session
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph, Value, attribute, producer, shape
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import BIAS, RESCALES, apply_corrections, rescale_factors
from npumake.quant.correction.rescale_groups import Factors, rescaled
from npumake.quant.precision.linear_layers import DQ, Q
from npumake.quant.search.fidelity import FidelityScore, FloatReference, SampleOutputs
from npumake.quant.search.methods import calibrated_with, ranges_by_method, with_recipe_method
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

FEW = 8
MOST = 32
SHOWN = 128
SOFTMAX = ("Softmax", "LogSoftmax")


class ModelOutputs(NamedTuple):
    """What a model tells of every sample: its answers, those of a Softmax as that reads them, and
    what such Softmaxes make."""

    read: SampleOutputs
    distributions: SampleOutputs


class HoldoutFold(NamedTuple):
    """The numbers of the samples that ranges, weights and biases follow while it is searched, and
    of those that judge what comes of it."""

    calibration: tuple[int, ...]
    holdout: tuple[int, ...]


@dataclass(frozen=True)
class RescaledModel:
    """A float model of the same function, its channels rescaled, and what its tensors did; `noise`
    is what search.sensitive has found of them."""

    graph: Graph
    statistics: Statistics
    factors: Factors
    noise: dict[Hashable, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluator:
    """What is tried runs here; `target` has the grids of the project's scheme. Recipes come by the
    `calibration`, of the samples shown in the first fold."""

    graph: Graph
    samples: Samples
    operators: Operators
    target: Target
    quantization: Quantization
    calibration: Calibration = field(default_factory=Calibration)

    def figure(self, recipe: Recipe) -> FidelityScore:
        """Over the samples held out. What was tried before is not run again."""
        models = [self.model(self._in_fold(recipe, fold), fold) for fold in self.folds]
        key = digest.of_document([digest.of_bytes(model.to_bytes()) for model in models])
        if key not in self._figures:
            outputs, (answers, ends) = self._fold_outputs(models), self._references
            figure = answers.figure(outputs.read)
            cosine, ties = ends.cosine(outputs.distributions), ends.ties(outputs.distributions)
            self._figures[key] = replace(figure, distributions=cosine, ties=figure.ties + ties)
        return self._figures[key]

    @cached_property
    def _figures(self) -> dict[str, FidelityScore]:
        return {}

    def _in_fold(self, recipe: Recipe, fold: HoldoutFold) -> Recipe:
        """As it is made of the samples shown there."""
        if fold == self.folds[0]:
            return recipe
        return refit_recipe(recipe, self.rescaled_model(recipe.switches, fold), self.calibration)

    def model(self, recipe: Recipe, fold: HoldoutFold | None = None) -> Graph:
        """The calibrated graph that the recipe makes, in the first fold where none is said."""
        fold = fold or self.folds[0]
        real = rescaled(self.graph, recipe.factors)
        calibrated = calibrated_with(real, recipe, self.target, self.quantization)
        weights = tuple(name for name in recipe.switches if name != BIAS)
        key = digest.of_document([digest.of_bytes(calibrated.to_bytes()), weights])
        latest, corrected = self._latest.get(fold, ("", calibrated))
        if latest != key:  # rounding takes longest: biases go on from its result
            corrected = self._recovered(real, calibrated, weights, fold)
            self._latest[fold] = key, corrected
        return (
            self._recovered(real, corrected, (BIAS,), fold)
            if BIAS in recipe.switches
            else corrected
        )

    @cached_property
    def _latest(self) -> dict[HoldoutFold, tuple[str, Graph]]:
        return {}

    def _recovered(
        self, real: Graph, calibrated: Graph, switches: Sequence[str], fold: HoldoutFold
    ) -> Graph:
        samples = self._some(fold.calibration)
        return apply_corrections(
            real, calibrated, switches, samples, self.target.weights, self.operators
        )

    @cached_property
    def folds(self) -> tuple[HoldoutFold, ...]:
        return holdout_folds(len(self.samples))

    @property
    def calibration_samples(self) -> Samples:
        """In the first fold."""
        return self._some(self.folds[0].calibration)

    def rescaled_model(
        self, switches: Sequence[str], fold: HoldoutFold | None = None
    ) -> RescaledModel:
        """Of what is shown, in the first fold where none is said."""
        fold = fold or self.folds[0]
        moved = tuple(name for name in switches if name in RESCALES)
        if (fold, moved) not in self._rescaled_models:
            samples = self._some(fold.calibration)
            if moved:
                model = rescale_model(self, samples, self.rescaled_model((), fold), moved)
            else:
                model = RescaledModel(self.graph, observe(self.graph, samples, self.operators), {})
            self._rescaled_models[fold, moved] = model
        return self._rescaled_models[fold, moved]

    @cached_property
    def _rescaled_models(self) -> dict[tuple[HoldoutFold, tuple[str, ...]], RescaledModel]:
        return {}

    @cached_property
    def float_outputs(self) -> SampleOutputs:
        """Those of the float model."""
        return self.outputs(self.graph)

    def outputs(self, graph: Graph) -> SampleOutputs:
        """Of any graph with the model's inputs, to the samples held out in the first fold."""
        return self._outputs(graph, self.folds[0])

    def _outputs(self, graph: Graph, fold: HoldoutFold) -> SampleOutputs:
        session = float_session(graph, self.operators)
        judges = self._some(fold.holdout)
        return list(side_by_side(lambda feed: session.run(None, feed), judges))

    @cached_property
    def _references(self) -> tuple[FloatReference, FloatReference]:
        read, distributions = self._fold_outputs([self.graph] * len(self.folds))
        return FloatReference(read), FloatReference(distributions)

    def _fold_outputs(self, graphs: Sequence[Graph]) -> ModelOutputs:
        """Of a graph for each fold, fold after fold."""
        by_fold = [self._outputs_of(*each) for each in zip(graphs, self.folds, strict=True)]
        read, distributions = zip(*by_fold, strict=True)
        return ModelOutputs([*chain(*read)], [*chain(*distributions)])

    def _outputs_of(self, graph: Graph, fold: HoldoutFold) -> ModelOutputs:
        watched = graph.copy()
        ends = [str(value.name) for value in watched.outputs]
        read = [str(_read_by_softmax(value).name) for value in watched.outputs]
        behind = [name for name in ends if name not in read]
        names = list(dict.fromkeys([*read, *behind]))
        watched.expose(names)
        samples = [dict(zip(names, each, strict=True)) for each in self._outputs(watched, fold)]
        return ModelOutputs(
            *([[sample[name] for name in some] for sample in samples] for some in (read, behind))
        )

    def _some(self, numbers: Sequence[int]) -> Samples:
        names = tuple(self.samples.names[number] for number in numbers)
        return Samples(names, lambda index: self.samples.read(numbers[index]))


def rescale_model(
    evaluator: Evaluator, samples: Samples, base: RescaledModel, switches: Sequence[str]
) -> RescaledModel:
    """`base` is the graph as it is; another needs statistics of its own, one pass more."""
    weights, operators = evaluator.target.weights, evaluator.operators
    factors = rescale_factors(base.graph, switches, samples, weights, operators, base.statistics)
    if not factors:
        return base
    graph = rescaled(base.graph, factors)
    return RescaledModel(graph, observe(graph, samples, operators), factors)


def refit_recipe(recipe: Recipe, base: RescaledModel, calibration: Calibration) -> Recipe:
    """The same on other ground. The nodes and tensors for int16 stay those that were tried; the
    ranges follow the samples there."""
    method = with_recipe_method(calibration, recipe)
    fresh = ranges_by_method(base.graph, base.statistics, method, recipe.symmetric)
    return replace(
        recipe, ranges=fresh.ranges, int16_ranges=fresh.int16_ranges, factors=base.factors
    )


def holdout_folds(count: int) -> tuple[HoldoutFold, ...]:
    """Of so many samples."""
    judges = tuple(holdout_samples(count))
    others = tuple(n for n in range(count) if n not in judges) or judges
    calibration = others[:: -(-len(others) // SHOWN)]
    first = HoldoutFold(calibration, judges)
    return (first, HoldoutFold(judges, others)) if FEW <= count < 2 * MOST else (first,)


def holdout_samples(count: int) -> range:
    """The numbers of the samples, of `count`, that a trial is judged by."""
    if count < FEW:
        return range(count)
    step = max(2, count // MOST)
    return range(step - 1, count, step)[:MOST]


def before_softmax(graph: Graph) -> Graph:
    """A copy that gives, for an answer that is one distribution, what its Softmax reads."""
    watched = graph.copy()
    watched.expose([str(_read_by_softmax(value).name) for value in watched.outputs])
    watched.drop_unused()
    return watched


def _read_by_softmax(answer: Value) -> Value:
    maker = producer(answer)
    while maker is not None and maker.op_type in (Q, DQ) and maker.inputs[0] is not None:
        maker = producer(maker.inputs[0])
    if maker is None or maker.op_type not in SOFTMAX or maker.inputs[0] is None:
        return answer
    dims = shape(answer)
    is_one = math.prod(dims) == dims[attribute(maker, "axis", -1)]
    return maker.inputs[0] if is_one else answer
