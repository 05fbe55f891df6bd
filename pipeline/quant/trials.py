"""Trials: what keeps the answers of the model closest is found by running it.

best method     the candidate recipes, the first of equals, those with int16 for uneven channels
                where that gives back GAIN: what is best at 8 bits is an accident where 8 bits do
                not do. The FINALISTS best of them go on with biases corrected, where that may be,
                `max` first, which clips nothing of what other samples do, and another only where
                it gives back GAIN of what is lost: the ranges that suffer most from noise are not
                those that suffer most from a shift
best switches   one switch after the other (pipeline.quant.recovery), kept where it gives back GAIN

A trial quantizes the model, which is run in float with Q/DQ; its figure is how close the answers
come to the float model's (pipeline.quant.closeness). An answer that is one distribution
is taken before its Softmax: of a thousand classes that leaves the few that the model is sure of,
and over a few samples their cosine is mostly chance. The figure is taken over the samples held
out: every HELD_OUT-th, from the last of the first HELD_OUT on, at most MOST of them; of fewer than
2 * HELD_OUT samples all. Their values are in the statistics, but no weight and no bias is fitted to
them until the choice is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pipeline.custom.operators import Operators
from pipeline.data.samples import Samples
from pipeline.engine.mixed import float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph, Value, attribute, producer, shape
from pipeline.progress import track
from pipeline.project.sections import Calibration, Quantization
from pipeline.quant.closeness import Answers, Yardstick
from pipeline.quant.layers import DQ, Q
from pipeline.quant.observe import observe
from pipeline.quant.recipe import Recipe, Trial
from pipeline.quant.recovery import (
    RESCALING,
    SWITCHES,
    WIDENING,
    WIDENING_ANSWERS,
    recovered,
    rescaling,
)
from pipeline.quant.rescale import Factors, rescaled
from pipeline.quant.search import calibrated_with, plain
from pipeline.quant.statistics import Statistics
from pipeline.quant.tail import wide_tail
from pipeline.quant.uneven import proposed
from pipeline.targets.target import Target

FINALISTS = 4
GAIN = 0.05  # of what is lost: a switch that gives less back over so few samples may be chance
HELD_OUT = 4
MOST = 32
SOFTMAX = ("Softmax", "LogSoftmax")


@dataclass(frozen=True)
class Bench:
    """What is tried runs here; `target` has the grids of the project's scheme."""

    graph: Graph
    samples: Samples
    operators: Operators
    target: Target
    quantization: Quantization

    def closeness(self, recipe: Recipe) -> float:
        """Over the samples held out."""
        return self._yardstick.closeness(self.answers(before_softmax(self.model(recipe))))

    def made(self, recipe: Recipe) -> Answers:
        """To the samples held out, of the model that the recipe makes."""
        return self.answers(self.model(recipe))

    def model(self, recipe: Recipe) -> Graph:
        """The calibrated graph that the recipe makes."""
        real = rescaled(self.graph, recipe.factors)
        made = calibrated_with(real, recipe, self.target, self.quantization)
        weights = self.target.weights
        return recovered(real, made, recipe.switches, self._fitted, weights, self.operators)

    @cached_property
    def _fitted(self) -> Samples:
        """Those that weights and biases are fitted to."""
        count = len(self.samples)
        judges = held_out(count)
        return _some(self.samples, [n for n in range(count) if n not in judges] or judges)

    @cached_property
    def meant(self) -> Answers:
        """Those of the float model."""
        return self.answers(self.graph)

    @cached_property
    def _yardstick(self) -> Yardstick:
        return Yardstick(self.answers(before_softmax(self.graph)))

    def answers(self, graph: Graph) -> Answers:
        """Of any graph with the model's inputs, to the samples held out."""
        session = float_session(graph, self.operators)
        judges = _some(self.samples, held_out(len(self.samples)))
        return list(side_by_side(lambda feed: session.run(None, feed), judges))


class Ground(NamedTuple):
    """A float model of the same function, its channels rescaled, and what its tensors did."""

    graph: Graph
    statistics: Statistics
    factors: Factors


def ground(bench: Bench, statistics: Statistics, switches: Sequence[str]) -> Ground:
    """`statistics` are those of the graph as it is; another needs its own, one pass more."""
    weights = bench.target.weights
    factors = rescaling(bench.graph, switches, bench.samples, weights, bench.operators)
    if not factors:
        return Ground(bench.graph, statistics, {})
    graph = rescaled(bench.graph, factors)
    return Ground(graph, observe(graph, bench.samples, bench.operators), factors)


def standing(found: Recipe, switches: tuple[str, ...], stood: Ground, bench: Bench) -> Recipe:
    """`found`, made of the ground it stands on, with these switches."""
    wide: tuple[str, ...] = ()
    if WIDENING in switches:
        wide = proposed(stood.graph, stood.statistics, bench.target, bench.quantization)
    if WIDENING_ANSWERS in switches:
        wide = (*wide, *wide_tail(stood.graph, bench.target, bench.quantization))
    return replace(found, switches=switches, factors=stood.factors, wide=tuple(dict.fromkeys(wide)))


def also_wide(candidates: Sequence[Recipe], stood: Ground, bench: Bench) -> list[Recipe]:
    """The candidates, then those that have int16 around uneven tensors."""
    switches = _with_switch(candidates[0], WIDENING).switches
    wide = [standing(candidate, switches, stood, bench) for candidate in candidates]
    return [*candidates, *(w for w, c in zip(wide, candidates, strict=True) if w.wide != c.wide)]


def best_method(candidates: Sequence[Recipe], bench: Bench, then: Sequence[str] = ()) -> Recipe:
    """The candidate whose answers are closest to the float model's, the first of equals; with one
    of the switches `then` where that brings those of a finalist closer still."""
    figures = [bench.closeness(recipe) for recipe in track(candidates, "recipe", len(candidates))]
    both = len({candidate.symmetric for candidate in candidates}) > 1
    order = sorted(range(len(figures)), key=lambda index: -figures[index])
    narrow = [index for index in order if WIDENING not in candidates[index].switches]
    if narrow and not _helps(figures[order[0]], figures[narrow[0]]):
        order = narrow
    found, closest = candidates[order[0]], figures[order[0]]
    trials = [
        Trial(_named(candidate, both), figures[index], index == order[0])
        for index, candidate in enumerate(candidates)
    ]
    finalists = sorted(order[:FINALISTS], key=lambda index: candidates[index].method != "max")
    for index, name in product(finalists, then):
        tried = _with_switch(candidates[index], name)
        close = bench.closeness(tried)
        helps = _helps(close, closest)
        trials.append(Trial(_named(tried, both), close, helps))
        found, closest = (tried, close) if helps else (found, closest)
    return replace(found, trials=tuple(trials))


def best_switches(
    found: Recipe,
    names: Sequence[str],
    bench: Bench,
    statistics: Statistics,
    calibration: Calibration,
) -> Recipe:
    """`found` with those of the switches that bring the answers closer, one after the other."""
    closest = [trial.closeness for trial in found.trials if trial.kept][-1]  # that of `found`
    both = "," in found.trials[0].what  # there the schemes are told apart
    calibration = replace(calibration, method=found.method)  # type: ignore[arg-type]
    for name in track(names, "recipe", len(names)):
        tried = _with_switch(found, name)
        what = _named(tried, both)
        if what in {trial.what for trial in found.trials}:
            continue
        if name in (*RESCALING, WIDENING, WIDENING_ANSWERS):
            stood = ground(bench, statistics, tried.switches)
            plainly = plain(stood.graph, stood.statistics, calibration, found.symmetric)
            tried = standing(replace(plainly, trials=found.trials), tried.switches, stood, bench)
            if (tried.factors, tried.wide) == (found.factors, found.wide):
                continue  # no channels can be rescaled, or are that uneven
        close = bench.closeness(tried)
        helps = _helps(close, closest)
        trial = Trial(what, close, helps)
        found = replace(tried if trial.kept else found, trials=(*found.trials, trial))
        closest = close if helps else closest
    return found


def held_out(count: int) -> range:
    """The numbers of the samples, of `count`, that a trial is judged by."""
    if count < 2 * HELD_OUT:
        return range(count)
    return range(HELD_OUT - 1, count, HELD_OUT)[:MOST]


def _helps(close: float, closest: float) -> bool:
    return 1.0 - close < (1.0 - GAIN) * (1.0 - closest)


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


def _with_switch(recipe: Recipe, name: str) -> Recipe:
    on = (*recipe.switches, name)
    return replace(recipe, switches=tuple(each for each in SWITCHES if each in on))


def _some(samples: Samples, numbers: Sequence[int]) -> Samples:
    names = tuple(samples.names[number] for number in numbers)
    return Samples(names, lambda index: samples.read(numbers[index]))


def _named(recipe: Recipe, both: bool) -> str:
    scheme = ("symmetric" if recipe.symmetric else "asymmetric",) if both else ()
    return " + ".join((", ".join((recipe.method, *scheme)), *recipe.switches))
