"""Trials: finds the recipe with the closest outputs by running the model.

best method     the closest candidate recipe that recovers MIN_GAIN of the loss of `max`, which
                clips least, with `migrate` where that evens self-gated activations out; then
                those with int16 for uneven channels, where one recovers
                MIN_GAIN: the best at 8 bits is chance where 8 bits do not suffice. SYMMETRIC is
                tried with it, where the chip has the choice: a correction would take ten times as
                long, and the scheme that is closer without one is closer with it. The
                MAX_FINALISTS best that lose at most MAX_LOSS_RATIO times as much as the best are
                also tried with corrected biases: ranges differ in noise and in shift
even channels   EVEN, with `max`, before the methods: every channel is rounded as finely as without
                it or finer, and no weight loses by it. So it is kept unless it loses more than the
                standard error, by either measure
best switches   one switch after another (correction.corrections); each is kept where it recovers
                MIN_GAIN

The plainer recipe stands until another recovers MIN_GAIN of the loss over the holdout samples
(search.evaluator), less the standard error of their choice (search.fidelity). Of those that do, the
closest by both measures wins.

TRUSTED_SWITCHES are kept wherever they gain by both measures, by closeness more than the standard
error, or the gain may be a loss on other samples. Of 11 builds of six trained
models where bias correction does, it also did on hundreds of other samples in 10; in 7 of these by
less than MIN_GAIN in the trial. FINER_SWITCHES round nothing more coarsely, whatever samples chose
the tensors, so their gain may rest on one sample: a lucky range or rounding costs accuracy
elsewhere, these do not. Outputs are int16 wherever that breaks argmax ties (search.argmax_ties),
which the closeness does not show; `default`, which is 8-bit, uses them for that alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from npumake import digest
from npumake.digest import Json
from npumake.distribution import distributed, width
from npumake.progress import report, track
from npumake.project.sections import Method
from npumake.quant.calibration.channel_imbalance import uneven_tensors
from npumake.quant.correction.corrections import (
    BIAS,
    EVEN,
    MIGRATE,
    RESCALING,
    SWITCHES,
    WIDENING,
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
)
from npumake.quant.correction.smoothquant import passes_gates
from npumake.quant.search.evaluator import Evaluator, RescaledModel, refit_recipe
from npumake.quant.search.fidelity import FidelityScore
from npumake.quant.search.figures import encoded, figures, score_of
from npumake.quant.search.int16_tensors import int16_tensors
from npumake.quant.search.methods import plain_recipe
from npumake.quant.search.recipe import Recipe, RecipeTrial
from npumake.quant.search.sensitive_tensors import find_sensitive_tensors

MAX_FINALISTS = 2
MAX_LOSS_RATIO = 2.0
MIN_GAIN = 0.05  # share of the loss; less may be chance over few samples
BASELINE_METHOD: Method = "max"
BEYOND_LIMITS = (0.3, 1.0)  # shares of int16 beyond the limit that a search shows, too
SYMMETRIC, ASYMMETRIC = "symmetric", "asymmetric"
TRUSTED_SWITCHES = (BIAS,)  # kept for any gain
FINER_SWITCHES = (
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
)  # kept for MIN_GAIN, whatever the error
# These switches change the ranges, or the types that use them.
REFITTING_SWITCHES = (SYMMETRIC, *RESCALING, WIDENING, WIDENING_ANSWERS, WIDENING_SENSITIVE)


class Best(NamedTuple):
    """The best recipe so far, and its figure."""

    recipe: Recipe
    figure: FidelityScore


def complete_recipe(
    recipe: Recipe, switches: tuple[str, ...], base: RescaledModel, evaluator: Evaluator
) -> Recipe:
    """The recipe with these switches and the int16 tensors that follow from them; its
    ranges are those of `base`."""
    settings, limit = evaluator.quantization, evaluator.int16_limit
    wide = int16_tensors(switches, base.graph, base.statistics, evaluator.target, settings, limit)
    complete = replace(recipe, switches=switches, factors=base.factors, wide=wide)
    if WIDENING_SENSITIVE not in switches:
        return complete
    return replace(complete, sensitive=find_sensitive_tensors(complete, base, evaluator))


def with_int16_candidates(
    candidates: Sequence[Recipe], base: RescaledModel, evaluator: Evaluator
) -> list[Recipe]:
    """The candidates, then those with int16 around uneven tensors."""
    switches = _with_switch(candidates[0], WIDENING).switches
    wide = [complete_recipe(candidate, switches, base, evaluator) for candidate in candidates]
    return [*candidates, *(w for w, c in zip(wide, candidates, strict=True) if w.wide != c.wide)]


def with_even_channels(
    switches: tuple[str, ...], symmetric: bool, evaluator: Evaluator
) -> tuple[tuple[str, ...], tuple[Recipe, ...]]:
    """The switches, with EVEN where it changes something and loses nothing, and the recipe of
    BASELINE_METHOD that was not kept; none where EVEN changes nothing."""
    base = evaluator.rescaled_model(switches)
    method = replace(evaluator.calibration, method=BASELINE_METHOD, recipe="plain")
    plain = plain_recipe(base.graph, base.statistics, method, symmetric)
    plain = complete_recipe(plain, switches, base, evaluator)
    even = _switched(plain, EVEN, evaluator)
    if even is None:
        return switches, ()
    before, after = figures((plain, even), evaluator)
    return (even.switches, (plain,)) if after.is_as_close(before) else (switches, (even,))


def with_gated_candidates(candidates: Sequence[Recipe], evaluator: Evaluator) -> list[Recipe]:
    """The candidates, then those with MIGRATE where that evens a self-gated activation out: a
    method chosen while its channels starve is chance."""
    base = evaluator.rescaled_model(candidates[0].switches)
    uneven = uneven_tensors(base.graph, base.statistics)
    if not passes_gates(base.graph, evaluator.target.weights, uneven):
        return [*candidates]
    switched = (_switched(candidate, MIGRATE, evaluator) for candidate in candidates)
    return [*candidates, *(recipe for recipe in switched if recipe is not None)]


def best_method(
    candidates: Sequence[Recipe],
    evaluator: Evaluator,
    first: Sequence[str] = (),
    then: Sequence[str] = (),
) -> Best:
    """The candidate with the closest outputs, with those of the switches `first` that bring it
    closer, and with one of `then` where that brings a finalist closer."""
    measured = track(figures(candidates, evaluator), "recipe", len(candidates))
    rows = [Best(*row) for row in zip(candidates, measured, strict=True)]
    narrow = [row for row in rows if WIDENING not in row.recipe.switches] or rows
    best = _closest(rows, _closest(narrow, _plainest(narrow)))
    trials = [_trial(row, evaluator, row is best) for row in rows]
    alike = rows if WIDENING in best.recipe.switches else narrow
    switched = best_switches(_with_trials(best, trials), first, evaluator)
    best, trials = switched, [*switched.recipe.trials]
    finalists = [*product(_finalists(alike, best), then)]
    corrected = [_with_switch(row.recipe, name) for row, name in finalists]
    results = map(Best, corrected, figures(corrected, evaluator))
    for (row, name), tried in zip(finalists, results, strict=True):
        helps = tried.figure.helps(best.figure, MIN_GAIN)
        if row is best:
            helps = _helps(name, tried.figure, best.figure, evaluator)
        trials.append(_trial(tried, evaluator, helps))
        best = tried if helps else best
    return _with_trials(best, trials)


def best_switches(best: Best, names: Sequence[str], evaluator: Evaluator) -> Best:
    """`best` with the switches that bring the outputs closer, one after another.

    As many as run at a time are tried at once. Those behind a kept one are tried again, with it.
    """
    recipe, figure = best
    left = [name for name in names if _may_help(name, figure, evaluator)]
    while left:
        ahead = left[: width()]
        for name, tried in zip(ahead, switch_trials(recipe, ahead, evaluator), strict=False):
            report("recipe", len(names) - len(left), len(names))
            left.remove(name)
            if tried is None or _named(tried.recipe, evaluator) in _tried(recipe):
                continue
            helps = _helps(name, tried.figure, figure, evaluator)
            trials = (*recipe.trials, _trial(tried, evaluator, helps))
            recipe, figure = tried if helps else (recipe, figure)
            recipe = replace(recipe, trials=trials)
            if helps:
                break
    report("recipe", len(names), len(names))
    return Best(recipe, figure)


def switch_trials(
    recipe: Recipe, names: Sequence[str], evaluator: Evaluator
) -> Iterator[Best | None]:
    """The recipe with each of the switches; None where a switch changes nothing."""
    items = [encoded({"recipe": digest.plain(recipe), "name": name}) for name in names]
    for result in distributed(switch_trial, items, evaluator=evaluator):
        document = json.loads(result)
        yield document and Best(
            Recipe.of_document(document["recipe"]), score_of(document["figure"])
        )


def switch_trial(evaluator: Evaluator, item: bytes) -> bytes:
    """One of them, as JSON."""
    document = json.loads(item)
    recipe = Recipe.of_document(document["recipe"])
    tried = _switched(recipe, document["name"], evaluator)
    if tried is None or _named(tried, evaluator) in _tried(recipe):
        return encoded(None)
    return encoded(digest.plain(Best(tried, evaluator.figure(tried))._asdict()))


def _switched(recipe: Recipe, name: str, evaluator: Evaluator) -> Recipe | None:
    """The recipe with the switch; None where that changes nothing."""
    if name in recipe.switches:
        return None
    tried = _with_switch(recipe, name)
    if name not in REFITTING_SWITCHES:
        return tried
    base = evaluator.rescaled_model(tried.switches)
    plainly = refit_recipe(replace(tried, wide=(), sensitive=()), base, evaluator.calibration)
    tried = complete_recipe(plainly, tried.switches, base, evaluator)
    return None if _effects(tried) == _effects(recipe) else tried


def _tried(recipe: Recipe) -> set[str]:
    return {trial.what for trial in recipe.trials}


def with_trials_beyond(recipe: Recipe, evaluator: Evaluator) -> Recipe:
    """The recipe with trials of more int16 than the limit allows, of which none is kept: they show
    what a larger limit would bring."""
    limit, switches = evaluator.int16_limit, _with_switch(recipe, WIDENING_SENSITIVE).switches
    if not limit or evaluator.quantization.widen_sensitive is False:
        return recipe
    base, trials = evaluator.rescaled_model(recipe.switches), [*recipe.trials]
    tried = {recipe.sensitive}
    for share in (share for share in BEYOND_LIMITS if share > limit):
        sensitive = find_sensitive_tensors(replace(recipe, sensitive=()), base, evaluator, share)
        if sensitive not in tried:
            wider = replace(recipe, switches=switches, sensitive=sensitive)
            trial = _trial(Best(wider, evaluator.figure(wider)), evaluator, is_kept=False)
            trials.append(replace(trial, what=f"{trial.what}, beyond most_int16"))
            tried.add(sensitive)
    return replace(recipe, trials=tuple(trials))


def _with_trials(best: Best, trials: Sequence[RecipeTrial]) -> Best:
    return Best(replace(best.recipe, trials=tuple(trials)), best.figure)


def _may_help(name: str, stands: FidelityScore, evaluator: Evaluator) -> bool:
    """False for int16 outputs that only ties would keep, where there are none."""
    is_for_ties = name == WIDENING_ANSWERS and evaluator.calibration.recipe == "plain"
    return stands.ties > 0 or not is_for_ties


def _helps(name: str, tried: FidelityScore, stands: FidelityScore, evaluator: Evaluator) -> bool:
    """Whether the switch is kept."""
    if name == WIDENING_ANSWERS and evaluator.calibration.recipe == "plain":
        return tried.unties(stands, MIN_GAIN)
    if name in TRUSTED_SWITCHES and tried.gains(stands):
        return True
    if name in FINER_SWITCHES and tried.gives_back(stands, MIN_GAIN):
        return True
    unties = name == WIDENING_ANSWERS and tried.unties(stands, MIN_GAIN)
    return unties or tried.helps(stands, MIN_GAIN)


def _effects(recipe: Recipe) -> Json:
    return digest.plain((recipe.symmetric, recipe.factors, recipe.wide, recipe.sensitive))


def _plainest(rows: Sequence[Best]) -> Best:
    return next((row for row in rows if row.recipe.method == BASELINE_METHOD), rows[0])


def _closest(rows: Iterable[Best], stands: Best) -> Best:
    """The closest row that recovers MIN_GAIN, the first of equals; else `stands`."""
    helping = (row for row in rows if row.figure.helps(stands.figure, MIN_GAIN))
    return min(helping, key=lambda row: row.figure.loss, default=stands)


def _finalists(rows: Sequence[Best], best: Best) -> list[Best]:
    """`best`, then the closest others; of equal outputs the first."""
    max_loss = MAX_LOSS_RATIO * min(row.figure.loss for row in rows)
    unlike: dict[FidelityScore, Best] = {best.figure: best}
    for row in sorted(rows, key=lambda row: row.figure.loss):
        if row.figure.loss <= max_loss:
            unlike.setdefault(row.figure, row)
    return list(unlike.values())[:MAX_FINALISTS]


def _trial(row: Best, evaluator: Evaluator, is_kept: bool) -> RecipeTrial:
    figure = row.figure
    cosine = min(figure.cosine.all, figure.distributions.all)
    named = _named(row.recipe, evaluator)
    return RecipeTrial(named, figure.close.all, cosine, is_kept, figure.ties, figure.int16)


def _with_switch(recipe: Recipe, name: str) -> Recipe:
    if name == SYMMETRIC:
        return replace(recipe, symmetric=True)
    on = (*recipe.switches, name)
    return replace(recipe, switches=tuple(switch for switch in SWITCHES if switch in on))


def _named(recipe: Recipe, evaluator: Evaluator) -> str:
    own = recipe.symmetric == evaluator.target.activations.symmetric
    scheme = SYMMETRIC if recipe.symmetric else ASYMMETRIC
    named = " + ".join((recipe.named, *(() if own else (scheme,)), *recipe.switches))
    count = len({*recipe.wide, *recipe.sensitive})
    return f"{named} (int16: {count} tensors)" if count else named
