"""Trials: what keeps the answers of the model closest is found by running it.

best method     of the candidate recipes the closest that gives back GAIN of what `max` loses, which
                clips least; then those with int16 for uneven channels, where one gives back GAIN:
                what is best at 8 bits is an accident where 8 bits do not do. The FINALISTS best
                that lose at most FAR times as much as the best go on with biases corrected, where
                that may be: the ranges that suffer most from noise are not those that suffer most
                from a shift
best switches   SYMMETRIC, zero in the middle of the grids where the chip leaves the choice, then
                one switch after the other (recovery.switches), kept where it gives back GAIN

So what is plainer stands until something else gives back GAIN of what is lost, over the samples
held out (search.evaluator), less the standard error that the choice of these samples brings
(search.closeness). What is closest of those that do is closest by both measures there.

Biases are TRUSTED: of what is best they are corrected wherever that gives back anything by both
measures. Of 11 builds of six trained models where it does, it did so on hundreds of other samples
in 10; in 7 of these by less than GAIN where it was tried. What is FINER rounds nothing more
coarsely, whatever samples named the tensors, so that its gain may rest on one of them: a range or a
rounding that was lucky with one costs elsewhere, this does not. And answers are int16 wherever that
parts what was tied (search.ties), which no closeness tells: `default`, which is of 8 bits, has them
so for that alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from npumake.progress import track
from npumake.quant.calibration.channel_imbalance import int16_candidates
from npumake.quant.correction.corrections import (
    BIAS,
    RESCALING,
    SWITCHES,
    WIDENING,
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
)
from npumake.quant.correction.rescale_groups import Factors
from npumake.quant.search.evaluator import Evaluator, RescaledModel, refit_recipe
from npumake.quant.search.fidelity import FidelityScore
from npumake.quant.search.output_layers import int16_output_layers
from npumake.quant.search.recipe import Recipe, RecipeTrial
from npumake.quant.search.sensitive_tensors import find_sensitive_tensors

FINALISTS = 2
FAR = 2.0
GAIN = 0.05  # of what is lost: a switch that gives less back over so few samples may be chance
PLAIN = "max"
SYMMETRIC, ASYMMETRIC = "symmetric", "asymmetric"
TRUSTED = (BIAS,)  # kept where it gives back anything
FINER = (WIDENING_ANSWERS, WIDENING_SENSITIVE)  # kept where it gives back GAIN, whatever the error
# With these the ranges are others, or where they hold.
REMADE = (SYMMETRIC, *RESCALING, WIDENING, WIDENING_ANSWERS, WIDENING_SENSITIVE)


class Best(NamedTuple):
    """What is best so far, and its figure."""

    recipe: Recipe
    figure: FidelityScore


def complete_recipe(
    recipe: Recipe, switches: tuple[str, ...], base: RescaledModel, evaluator: Evaluator
) -> Recipe:
    """`found`, made of the ground it stands on, with these switches."""
    wide: tuple[str, ...] = ()
    if WIDENING in switches:
        wide = int16_candidates(
            base.graph, base.statistics, evaluator.target, evaluator.quantization
        )
    if WIDENING_ANSWERS in switches:
        wide = (*wide, *int16_output_layers(base.graph, evaluator.target, evaluator.quantization))
    wide = tuple(dict.fromkeys(wide))
    complete = replace(recipe, switches=switches, factors=base.factors, wide=wide)
    if WIDENING_SENSITIVE not in switches:
        return complete
    return replace(complete, sensitive=find_sensitive_tensors(complete, base, evaluator))


def with_int16_candidates(
    candidates: Sequence[Recipe], base: RescaledModel, evaluator: Evaluator
) -> list[Recipe]:
    """The candidates, then those that have int16 around uneven tensors."""
    switches = _with_switch(candidates[0], WIDENING).switches
    wide = [complete_recipe(candidate, switches, base, evaluator) for candidate in candidates]
    return [*candidates, *(w for w, c in zip(wide, candidates, strict=True) if w.wide != c.wide)]


def best_method(
    candidates: Sequence[Recipe], evaluator: Evaluator, then: Sequence[str] = ()
) -> Best:
    """The candidate whose answers are closest to the float model's; with one of the switches
    `then` where that brings those of a finalist closer still."""
    figures = [evaluator.figure(recipe) for recipe in track(candidates, "recipe", len(candidates))]
    rows = [Best(*row) for row in zip(candidates, figures, strict=True)]
    narrow = [row for row in rows if WIDENING not in row.recipe.switches] or rows
    best = _closest(rows, _closest(narrow, _plainest(narrow)))
    trials = [_trial(row, evaluator, row is best) for row in rows]
    alike = rows if WIDENING in best.recipe.switches else narrow
    for row, name in product(_finalists(alike, best), then):
        recipe = _with_switch(row.recipe, name)
        tried = Best(recipe, evaluator.figure(recipe))
        helps = tried.figure.helps(best.figure, GAIN)
        if row is best:
            helps = _helps(name, tried.figure, best.figure, evaluator)
        trials.append(_trial(tried, evaluator, helps))
        best = tried if helps else best
    return Best(replace(best.recipe, trials=tuple(trials)), best.figure)


def best_switches(best: Best, names: Sequence[str], evaluator: Evaluator) -> Recipe:
    """`best` with those of the switches that bring the answers closer, one after the other."""
    recipe, figure = best
    for name in track(names, "recipe", len(names)):
        if name in recipe.switches:
            continue
        tried = _with_switch(recipe, name)
        if name in REMADE:
            base = evaluator.rescaled_model(tried.switches)
            plainly = refit_recipe(
                replace(tried, wide=(), sensitive=()), base, evaluator.calibration
            )
            tried = complete_recipe(plainly, tried.switches, base, evaluator)
            if _laid(tried) == _laid(recipe):
                continue  # no channels can be rescaled, or are that uneven
        if _named(tried, evaluator) in {trial.what for trial in recipe.trials}:
            continue
        reached = evaluator.figure(tried)
        helps = _helps(name, reached, figure, evaluator)
        trials = (*recipe.trials, _trial(Best(tried, reached), evaluator, helps))
        recipe, figure = (tried, reached) if helps else (recipe, figure)
        recipe = replace(recipe, trials=trials)
    return recipe


def _helps(name: str, tried: FidelityScore, stands: FidelityScore, evaluator: Evaluator) -> bool:
    """Whether the switch is kept."""
    if name == WIDENING_ANSWERS and evaluator.calibration.recipe == "plain":
        return tried.unties(stands, GAIN)
    if name in TRUSTED and tried.gains(stands):
        return True
    if name in FINER and tried.gives_back(stands, GAIN):
        return True
    unties = name == WIDENING_ANSWERS and tried.unties(stands, GAIN)
    return unties or tried.helps(stands, GAIN)


def _laid(recipe: Recipe) -> tuple[bool, Factors, tuple[str, ...], tuple[str, ...]]:
    return recipe.symmetric, recipe.factors, recipe.wide, recipe.sensitive


def _plainest(rows: Sequence[Best]) -> Best:
    return next((row for row in rows if row.recipe.method == PLAIN), rows[0])


def _closest(rows: Iterable[Best], stands: Best) -> Best:
    """Of those that give back GAIN, the first of equals; else what stands."""
    helping = (row for row in rows if row.figure.helps(stands.figure, GAIN))
    return min(helping, key=lambda row: row.figure.lost, default=stands)


def _finalists(rows: Sequence[Best], best: Best) -> list[Best]:
    """`best`, then those closest; of those with the same answers the first."""
    most = FAR * min(row.figure.lost for row in rows)
    unlike: dict[FidelityScore, Best] = {best.figure: best}
    for row in sorted(rows, key=lambda row: row.figure.lost):
        if row.figure.lost <= most:
            unlike.setdefault(row.figure, row)
    return list(unlike.values())[:FINALISTS]


def _trial(row: Best, evaluator: Evaluator, is_kept: bool) -> RecipeTrial:
    figure = row.figure
    cosine = min(figure.cosine.all, figure.distributions.all)
    return RecipeTrial(
        _named(row.recipe, evaluator), figure.close.all, cosine, is_kept, figure.ties
    )


def _with_switch(recipe: Recipe, name: str) -> Recipe:
    if name == SYMMETRIC:
        return replace(recipe, symmetric=True)
    on = (*recipe.switches, name)
    return replace(recipe, switches=tuple(each for each in SWITCHES if each in on))


def _named(recipe: Recipe, evaluator: Evaluator) -> str:
    own = recipe.symmetric == evaluator.target.activations.symmetric
    scheme = SYMMETRIC if recipe.symmetric else ASYMMETRIC
    named = " + ".join((recipe.named, *(() if own else (scheme,)), *recipe.switches))
    wide = {"nodes": len(recipe.wide), "tensors": len(recipe.sensitive)}
    counts = ", ".join(f"{count} {kind}" for kind, count in wide.items() if count)
    return f"{named} (int16: {counts})" if counts else named
