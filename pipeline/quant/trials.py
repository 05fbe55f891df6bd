"""Trials: what keeps the answers of the model closest is found by running it.

best method     the candidate recipes, the first of equals
best switches   one switch after the other (pipeline.quant.recovery), kept where it helps

A trial quantizes the model, which is run in float with Q/DQ; its figure is the cosine with the
answers of the float model, of the output that comes off worst. It is taken over the samples held
out: every HELD_OUT-th, from the last of the first HELD_OUT on, at most MOST of them; of fewer than
2 * HELD_OUT samples all. Their values are in the statistics, but no weight and no bias is fitted to
them until the choice is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipeline.custom.operators import Operators
from pipeline.data.samples import Samples
from pipeline.engine.mixed import float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph
from pipeline.kernels.measure import Agreement, agreement
from pipeline.progress import track
from pipeline.project.sections import Calibration, Quantization
from pipeline.quant.observe import observe
from pipeline.quant.recipe import Recipe, Trial
from pipeline.quant.recovery import RESCALING, SWITCHES, WIDENING, recovered, rescaling
from pipeline.quant.rescale import Factors, rescaled
from pipeline.quant.search import calibrated_with, plain
from pipeline.quant.statistics import Statistics
from pipeline.quant.uneven import proposed
from pipeline.targets.target import Target

HELD_OUT = 4
MOST = 32
DIGITS = 6

Answers = list[list[np.ndarray]]  # by sample and output


@dataclass(frozen=True)
class Bench:
    """What is tried runs here; `target` has the grids of the project's scheme."""

    graph: Graph
    samples: Samples
    operators: Operators
    target: Target
    quantization: Quantization

    def cosine(self, recipe: Recipe) -> float:
        """Of the worst output, over the samples held out."""
        return _cosine(self.meant, self.made(recipe))

    def made(self, recipe: Recipe) -> Answers:
        """To the samples held out, of the model that the recipe makes."""
        real = rescaled(self.graph, recipe.factors)
        made = calibrated_with(real, recipe, self.target, self.quantization)
        weights = self.target.weights
        made = recovered(real, made, recipe.switches, self._fitted, weights, self.operators)
        return self._answers(made)

    @cached_property
    def _fitted(self) -> Samples:
        """Those that weights and biases are fitted to."""
        count = len(self.samples)
        judges = held_out(count)
        return _some(self.samples, [n for n in range(count) if n not in judges] or judges)

    @cached_property
    def meant(self) -> Answers:
        """Those of the float model."""
        return self._answers(self.graph)

    def _answers(self, graph: Graph) -> Answers:
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
    return replace(found, switches=switches, factors=stood.factors, wide=wide)


def best_method(candidates: Sequence[Recipe], bench: Bench) -> Recipe:
    """The candidate whose answers are closest to the float model's, the first of equals."""
    cosines = [bench.cosine(recipe) for recipe in track(candidates, "recipe", len(candidates))]
    winner = int(np.argmax(cosines))
    both = len({candidate.symmetric for candidate in candidates}) > 1
    trials = tuple(
        Trial(_named(candidate, both), cosine, index == winner)
        for index, (candidate, cosine) in enumerate(zip(candidates, cosines, strict=True))
    )
    return replace(candidates[winner], trials=trials)


def best_switches(
    found: Recipe,
    names: Sequence[str],
    bench: Bench,
    statistics: Statistics,
    calibration: Calibration,
) -> Recipe:
    """`found` with those of the switches that bring the answers closer, one after the other."""
    closest = max(trial.cosine for trial in found.trials)
    calibration = replace(calibration, method=found.method)  # type: ignore[arg-type]
    for name in track(names, "recipe", len(names)):
        switches = tuple(each for each in SWITCHES if each in (*found.switches, name))
        tried = replace(found, switches=switches)
        if name in (*RESCALING, WIDENING):
            stood = ground(bench, statistics, switches)
            plainly = plain(stood.graph, stood.statistics, calibration, found.symmetric)
            tried = standing(replace(plainly, trials=found.trials), switches, stood, bench)
            if (tried.factors, tried.wide) == (found.factors, found.wide):
                continue  # no channels can be rescaled, or are that uneven
        cosine = bench.cosine(tried)
        trial = Trial(" + ".join((found.method, *switches)), cosine, cosine > closest)
        found = replace(tried if trial.kept else found, trials=(*found.trials, trial))
        closest = max(closest, cosine)
    return found


def held_out(count: int) -> range:
    """The numbers of the samples, of `count`, that a trial is judged by."""
    if count < 2 * HELD_OUT:
        return range(count)
    return range(HELD_OUT - 1, count, HELD_OUT)[:MOST]


def _some(samples: Samples, numbers: Sequence[int]) -> Samples:
    names = tuple(samples.names[number] for number in numbers)
    return Samples(names, lambda index: samples.read(numbers[index]))


def _named(recipe: Recipe, both: bool) -> str:
    scheme = ("symmetric" if recipe.symmetric else "asymmetric",) if both else ()
    return " + ".join((", ".join((recipe.method, *scheme)), *recipe.switches))


def _cosine(real: Answers, made: Answers) -> float:
    """Of the worst output, over all samples; rounded, so that no last bit decides."""
    totals = [
        sum((agreement(a[index], b[index]) for a, b in zip(real, made, strict=True)), Agreement())
        for index in range(len(real[0]))
    ]
    return round(min(total.cosine for total in totals), DIGITS)
