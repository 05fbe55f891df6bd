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

Where those are fewer than MOST, the halves take turns: the recipe is made of the samples held out
too, and judged by the others, and the figure is taken over both turns. Ranges that follow eight
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
from npumake.quant.correction.corrections import BIAS, RESCALES, recovered, rescaling
from npumake.quant.correction.rescale_groups import Factors, rescaled
from npumake.quant.precision.linear_layers import DQ, Q
from npumake.quant.search.fidelity import Answers, FidelityScore, FloatReference
from npumake.quant.search.methods import as_found, calibrated_with, plain
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

FEW = 8
MOST = 32
SHOWN = 128
SOFTMAX = ("Softmax", "LogSoftmax")


class ModelOutputs(NamedTuple):
    """What a model tells of every sample: its answers, those of a Softmax as that reads them, and
    what such Softmaxes make."""

    read: Answers
    distributions: Answers


class HoldoutFold(NamedTuple):
    """The numbers of the samples that ranges, weights and biases follow while it is searched, and
    of those that judge what comes of it."""

    shown: tuple[int, ...]
    judges: tuple[int, ...]


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
    `calibration`, of the samples shown in the first turn."""

    graph: Graph
    samples: Samples
    operators: Operators
    target: Target
    quantization: Quantization
    calibration: Calibration = field(default_factory=Calibration)

    def figure(self, recipe: Recipe) -> FidelityScore:
        """Over the samples held out. What was tried before is not run again."""
        models = [self.model(self._in_turn(recipe, turn), turn) for turn in self.turns]
        key = digest.of_document([digest.of_bytes(model.to_bytes()) for model in models])
        if key not in self._figures:
            told, (answers, ends) = self._told(models), self._yardsticks
            figure = answers.figure(told.read)
            cosine, ties = ends.cosine(told.distributions), ends.ties(told.distributions)
            self._figures[key] = replace(figure, distributions=cosine, ties=figure.ties + ties)
        return self._figures[key]

    @cached_property
    def _figures(self) -> dict[str, FidelityScore]:
        return {}

    def _in_turn(self, recipe: Recipe, turn: HoldoutFold) -> Recipe:
        """As it is made of the samples shown there."""
        if turn == self.turns[0]:
            return recipe
        return remade(recipe, self.ground(recipe.switches, turn), self.calibration)

    def model(self, recipe: Recipe, turn: HoldoutFold | None = None) -> Graph:
        """The calibrated graph that the recipe makes, in the first turn where none is said."""
        turn = turn or self.turns[0]
        real = rescaled(self.graph, recipe.factors)
        made = calibrated_with(real, recipe, self.target, self.quantization)
        weights = tuple(name for name in recipe.switches if name != BIAS)
        key = digest.of_document([digest.of_bytes(made.to_bytes()), weights])
        latest, found = self._latest.get(turn, ("", made))
        if latest != key:  # rounding takes longest: biases go on from its result
            found = self._recovered(real, made, weights, turn)
            self._latest[turn] = key, found
        return self._recovered(real, found, (BIAS,), turn) if BIAS in recipe.switches else found

    @cached_property
    def _latest(self) -> dict[HoldoutFold, tuple[str, Graph]]:
        return {}

    def _recovered(
        self, real: Graph, made: Graph, switches: Sequence[str], turn: HoldoutFold
    ) -> Graph:
        shown = self._some(turn.shown)
        return recovered(real, made, switches, shown, self.target.weights, self.operators)

    @cached_property
    def turns(self) -> tuple[HoldoutFold, ...]:
        return turns(len(self.samples))

    @property
    def shown(self) -> Samples:
        """In the first turn."""
        return self._some(self.turns[0].shown)

    def ground(self, switches: Sequence[str], turn: HoldoutFold | None = None) -> RescaledModel:
        """Of what is shown, in the first turn where none is said."""
        turn = turn or self.turns[0]
        moved = tuple(name for name in switches if name in RESCALES)
        if (turn, moved) not in self._grounds:
            shown = self._some(turn.shown)
            if moved:
                found = ground(self, shown, self.ground((), turn), moved)
            else:
                found = RescaledModel(self.graph, observe(self.graph, shown, self.operators), {})
            self._grounds[turn, moved] = found
        return self._grounds[turn, moved]

    @cached_property
    def _grounds(self) -> dict[tuple[HoldoutFold, tuple[str, ...]], RescaledModel]:
        return {}

    @cached_property
    def meant(self) -> Answers:
        """Those of the float model."""
        return self.answers(self.graph)

    def answers(self, graph: Graph) -> Answers:
        """Of any graph with the model's inputs, to the samples held out in the first turn."""
        return self._answers(graph, self.turns[0])

    def _answers(self, graph: Graph, turn: HoldoutFold) -> Answers:
        session = float_session(graph, self.operators)
        judges = self._some(turn.judges)
        return list(side_by_side(lambda feed: session.run(None, feed), judges))

    @cached_property
    def _yardsticks(self) -> tuple[FloatReference, FloatReference]:
        read, distributions = self._told([self.graph] * len(self.turns))
        return FloatReference(read), FloatReference(distributions)

    def _told(self, graphs: Sequence[Graph]) -> ModelOutputs:
        """Of a graph for each turn, turn after turn."""
        by_turn = [self._told_in(*each) for each in zip(graphs, self.turns, strict=True)]
        read, distributions = zip(*by_turn, strict=True)
        return ModelOutputs([*chain(*read)], [*chain(*distributions)])

    def _told_in(self, graph: Graph, turn: HoldoutFold) -> ModelOutputs:
        watched = graph.copy()
        ends = [str(value.name) for value in watched.outputs]
        read = [str(_read_by_softmax(value).name) for value in watched.outputs]
        behind = [name for name in ends if name not in read]
        names = list(dict.fromkeys([*read, *behind]))
        watched.expose(names)
        made = [dict(zip(names, each, strict=True)) for each in self._answers(watched, turn)]
        return ModelOutputs(
            *([[one[name] for name in some] for one in made] for some in (read, behind))
        )

    def _some(self, numbers: Sequence[int]) -> Samples:
        names = tuple(self.samples.names[number] for number in numbers)
        return Samples(names, lambda index: self.samples.read(numbers[index]))


def ground(
    bench: Evaluator, samples: Samples, stood: RescaledModel, switches: Sequence[str]
) -> RescaledModel:
    """`stood` is the graph as it is; another needs statistics of its own, one pass more."""
    weights, operators = bench.target.weights, bench.operators
    factors = rescaling(stood.graph, switches, samples, weights, operators, stood.statistics)
    if not factors:
        return stood
    graph = rescaled(stood.graph, factors)
    return RescaledModel(graph, observe(graph, samples, operators), factors)


def remade(recipe: Recipe, stood: RescaledModel, calibration: Calibration) -> Recipe:
    """The same on other ground. The nodes and tensors for int16 stay those that were tried; the
    ranges follow the samples there."""
    said = as_found(calibration, recipe)
    made = plain(stood.graph, stood.statistics, said, recipe.symmetric)
    return replace(
        recipe, ranges=made.ranges, int16_ranges=made.int16_ranges, factors=stood.factors
    )


def turns(count: int) -> tuple[HoldoutFold, ...]:
    """Of so many samples."""
    judges = tuple(held_out(count))
    others = tuple(n for n in range(count) if n not in judges) or judges
    shown = others[:: -(-len(others) // SHOWN)]
    first = HoldoutFold(shown, judges)
    return (first, HoldoutFold(judges, others)) if FEW <= count < 2 * MOST else (first,)


def held_out(count: int) -> range:
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
