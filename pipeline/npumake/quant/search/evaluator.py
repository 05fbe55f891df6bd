"""Evaluator: runs recipes on holdout samples and scores their outputs.

A trial quantizes the model, which runs in float with Q/DQ. Its figure is the closeness to the float
model's outputs (search.fidelity). An output that is one distribution is compared before its
Softmax: behind it, of a thousand classes only the few confident ones count, and over a few samples
their cosine is mostly chance. That cosine is reported beside the figure, and a recipe that loses
far more of it is dropped.

The samples of ranges and of scores are apart (search.holdout). Weights and biases of a trial follow
at most MAX_CORRECTION_SAMPLES of the former. The chosen recipe is then made from all samples.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from npumake import digest
from npumake.custom.operators import Operators
from npumake.data.samples import Feed, Samples, evenly_spaced
from npumake.engine.float_session import float_session
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph, Value, attribute, producer, shape
from npumake.graph.qdq import before_qdq
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.bias_correction import FloatLayers
from npumake.quant.correction.corrections import (
    BIAS,
    CORRECTING,
    RESCALES,
    apply_corrections,
    rescale_factors,
)
from npumake.quant.correction.rescale_groups import Factors, rescaled
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.search.fidelity import FidelityScore, FloatReference, SampleOutputs
from npumake.quant.search.holdout import HoldoutFold, holdout_folds
from npumake.quant.search.int16_budget import int16_limit
from npumake.quant.search.methods import calibrated_with, plain_recipe, with_recipe_method
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

MAX_CORRECTION_SAMPLES = 32  # of a trial, for its weights and biases
SOFTMAX = ("Softmax", "LogSoftmax")
# A recipe without what its model does not follow from.
NAMELESS: Mapping[str, Any] = {
    "method": "",
    "methods": {},
    "trials": (),
    "percentile": None,
    "selected": "",
}


class ModelOutputs(NamedTuple):
    """The outputs of every sample: Softmax outputs as their inputs (`read`) or `distributions`."""

    read: SampleOutputs
    distributions: SampleOutputs


@dataclass(frozen=True)
class RescaledModel:
    """A rescaled float model of the same function, its statistics and channel factors; `noise`
    caches search.tensor_noise."""

    graph: Graph
    statistics: Statistics
    factors: Factors
    noise: dict[Hashable, float] = field(default_factory=dict)


class CorrectedModel(NamedTuple):
    """The calibrated graph of a recipe without bias correction."""

    recipe: Recipe
    graph: Graph


class ProbedModel(NamedTuple):
    """A float model before its Softmax, with feeds and its outputs for them."""

    graph: Graph
    feeds: Sequence[Feed]
    reference: FloatReference


@dataclass(frozen=True)
class Evaluator:
    """Runs recipes for one graph; `target` has the grids of the project's scheme.

    Recipes come from `calibration` over the calibration samples of the first fold.
    """

    graph: Graph
    samples: Samples
    operators: Operators
    target: Target
    quantization: Quantization
    calibration: Calibration = field(default_factory=Calibration)

    def figure(self, recipe: Recipe) -> FidelityScore:
        """The score over all folds, cached by all that a model follows from: methods may agree."""
        recipes = [self._in_fold(recipe, fold) for fold in self.folds]
        nameless = [replace(own, **NAMELESS) for own in recipes]
        key = digest.of_document(digest.plain(nameless))
        if key not in self._figures:
            models = [self.model(*pair) for pair in zip(recipes, self.folds, strict=True)]
            outputs, (expected, ends) = self._fold_outputs(models), self._references
            figure = expected.figure(outputs.read)
            cosine, ties = ends.cosine(outputs.distributions), ends.ties(outputs.distributions)
            share = max(map(int16_share, models))
            self._figures[key] = replace(
                figure, distributions=cosine, ties=figure.ties + ties, int16=share
            )
        return self._figures[key]

    @property
    def int16_limit(self) -> float | None:
        """The largest share of multiply-accumulates in int16."""
        return int16_limit(self.quantization, self.calibration)

    @cached_property
    def probed_models(self) -> dict[Hashable, ProbedModel]:
        """A cache of search.tensor_noise."""
        return {}

    @cached_property
    def _figures(self) -> dict[str, FidelityScore]:
        return {}

    def _in_fold(self, recipe: Recipe, fold: HoldoutFold) -> Recipe:
        """The recipe, refitted to the samples of the fold."""
        if fold == self.folds[0]:
            return recipe
        return refit_recipe(recipe, self.rescaled_model(recipe.switches, fold), self.calibration)

    def model(self, recipe: Recipe, fold: HoldoutFold | None = None) -> Graph:
        """The calibrated graph of the recipe, in the first fold by default."""
        fold = fold or self.folds[0]
        real = rescaled(self.graph, recipe.factors)
        if not {*CORRECTING} & {*recipe.switches}:
            return calibrated_with(real, recipe, self.target, self.quantization)
        weights = tuple(name for name in recipe.switches if name != BIAS)
        unbiased = replace(recipe, switches=weights, trials=())
        latest = self._latest.get(fold)
        if latest is None or latest.recipe != unbiased:  # rounding takes longest: biases follow it
            calibrated = calibrated_with(real, recipe, self.target, self.quantization)
            corrected = self._corrected(recipe, real, calibrated, weights, (), fold)
            self._latest[fold] = latest = CorrectedModel(unbiased, corrected)
        return (
            self._corrected(recipe, real, latest.graph, (BIAS,), weights, fold)
            if BIAS in recipe.switches
            else latest.graph
        )

    @cached_property
    def _latest(self) -> dict[HoldoutFold, CorrectedModel]:
        return {}

    def _corrected(
        self,
        recipe: Recipe,
        real: Graph,
        calibrated: Graph,
        switches: Sequence[str],
        applied: Sequence[str],
        fold: HoldoutFold,
    ) -> Graph:
        few = evenly_spaced(self._subset(fold.calibration), MAX_CORRECTION_SAMPLES)
        key = (fold, digest.of_document(digest.plain(recipe.factors)))
        layers = self._float_layers.setdefault(key, FloatLayers(real, self.operators))
        weights = self.target.weights
        return apply_corrections(layers, calibrated, switches, few, weights, applied)

    @cached_property
    def _float_layers(self) -> dict[Hashable, FloatLayers]:
        return {}

    @cached_property
    def folds(self) -> tuple[HoldoutFold, ...]:
        return holdout_folds(len(self.samples))

    @property
    def calibration_samples(self) -> Samples:
        """The calibration samples of the first fold."""
        return self._subset(self.folds[0].calibration)

    def rescaled_model(
        self, switches: Sequence[str], fold: HoldoutFold | None = None
    ) -> RescaledModel:
        """The model rescaled by these switches, from the samples of a fold, the first by
        default."""
        fold = fold or self.folds[0]
        moved = tuple(name for name in switches if name in RESCALES)
        if (fold, moved) not in self._rescaled_models:
            samples = self._subset(fold.calibration)
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
        """The float model's outputs."""
        return self.outputs(self.graph)

    def outputs(self, graph: Graph) -> SampleOutputs:
        """The outputs of a graph with the model's inputs, for the holdout samples of the first
        fold."""
        return self._outputs(graph, self.folds[0])

    def _outputs(self, graph: Graph, fold: HoldoutFold) -> SampleOutputs:
        session = float_session(graph, self.operators)
        judges = self._subset(fold.holdout)
        return list(side_by_side(lambda feed: session.run(None, feed), judges))

    @cached_property
    def _references(self) -> tuple[FloatReference, FloatReference]:
        read, distributions = self._fold_outputs([self.graph] * len(self.folds))
        return FloatReference(read), FloatReference(distributions)

    def _fold_outputs(self, graphs: Sequence[Graph]) -> ModelOutputs:
        """The outputs of one graph per fold, fold after fold."""
        by_fold = [self._outputs_of(*pair) for pair in zip(graphs, self.folds, strict=True)]
        read, distributions = zip(*by_fold, strict=True)
        return ModelOutputs([*chain(*read)], [*chain(*distributions)])

    def _outputs_of(self, graph: Graph, fold: HoldoutFold) -> ModelOutputs:
        watched = graph.copy()
        ends = [str(value.name) for value in watched.outputs]
        read = [str(_read_by_softmax(value).name) for value in watched.outputs]
        behind = [name for name in ends if name not in read]
        names = list(dict.fromkeys([*read, *behind]))
        watched.expose(names)
        samples = [dict(zip(names, values, strict=True)) for values in self._outputs(watched, fold)]
        return ModelOutputs(
            *(
                [[sample[name] for name in tensors] for sample in samples]
                for tensors in (read, behind)
            )
        )

    def _subset(self, numbers: Sequence[int]) -> Samples:
        return self.samples.subset(numbers)


def rescale_model(
    evaluator: Evaluator, samples: Samples, base: RescaledModel, switches: Sequence[str]
) -> RescaledModel:
    """`base` rescaled by the switches, with new statistics: one more pass over the samples."""
    weights, operators = evaluator.target.weights, evaluator.operators
    factors = rescale_factors(base.graph, switches, samples, weights, operators, base.statistics)
    if not factors:
        return base
    graph = rescaled(base.graph, factors)
    return RescaledModel(graph, observe(graph, samples, operators), factors)


def refit_recipe(recipe: Recipe, base: RescaledModel, calibration: Calibration) -> Recipe:
    """The recipe with ranges and factors of `base`. Its int16 nodes and tensors stay, and so do the
    methods that `output_mix` chose."""
    method = with_recipe_method(calibration, recipe)
    fresh = plain_recipe(base.graph, base.statistics, method, recipe.symmetric, recipe.methods)
    return replace(
        recipe,
        ranges=fresh.ranges,
        methods=fresh.methods,
        int16_ranges=fresh.int16_ranges,
        factors=base.factors,
    )


def before_softmax(graph: Graph) -> Graph:
    """A copy that outputs the Softmax input of each output that is one distribution."""
    watched = graph.copy()
    watched.expose([str(_read_by_softmax(value).name) for value in watched.outputs])
    watched.drop_unused()
    return watched


def _read_by_softmax(output: Value) -> Value:
    maker = producer(before_qdq(output))
    if maker is None or maker.op_type not in SOFTMAX or maker.inputs[0] is None:
        return output
    dims = shape(output)
    is_one = math.prod(dims) == dims[attribute(maker, "axis", -1)]
    return maker.inputs[0] if is_one else output
