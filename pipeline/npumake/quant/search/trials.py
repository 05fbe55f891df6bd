"""Trials: finds the recipe with the closest outputs by running the model.

best method     the closest candidate recipe that recovers MIN_GAIN of the loss of `max`, which
                clips least, with `migrate` where that evens self-gated activations out; then
                those with int16 for uneven channels, where one recovers
                MIN_GAIN: the best at 8 bits is chance where 8 bits do not suffice. SYMMETRIC is
                tried with it, where the chip has the choice: a correction would take ten times as
                long, and the scheme that is closer without one is closer with it. The
                MAX_FINALISTS best that lose at most MAX_LOSS_RATIO times as much as the best are
                also tried with corrected biases: ranges differ in noise and in shift
best switches   one switch after another (correction.corrections); each is kept where it recovers
                MIN_GAIN

The plainer recipe stands until another recovers MIN_GAIN of the loss over the holdout samples
(search.evaluator), less the standard error of their choice (search.fidelity). Of those that do, the
closest by both measures wins.

TRUSTED_SWITCHES are kept unless they lose more than MAX_ERRORS standard errors, by either measure:
a trial sees half of the samples and judges by few, and is wrong more often than they are. Over five
draws of the samples of ten models corrected biases gained on other samples in 74 of 75, and the
rule of the others kept them in about half; even channels gained in all 26 of three models.
COSTLY_SWITCHES move the difficulty to the weights, and have to gain by MAX_ERRORS: by one error
`migrate` was kept in ten draws of four models, and lost a tenth on the mean. LIKELY_SWITCHES are
kept for any gain by both measures, by closeness beyond its error: adaptive rounding gained in eight
of ten models, by more than that in a third of the draws. FINER_SWITCHES round nothing more
coarsely, whatever samples chose the tensors, so their gain may rest on one sample: a lucky range or
rounding costs accuracy elsewhere, these do not. (benchmarks/folds.py measures that.)

Outputs are int16 wherever that breaks argmax ties (search.argmax_ties), which the closeness does
not show; `default`, which is 8-bit, uses them for that alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from npumake import digest
from npumake.distribution import distributed, width
from npumake.progress import report, track
from npumake.quant.correction.corrections import (
    BIAS,
    EVEN,
    MIGRATE,
    WIDENING,
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
)
from npumake.quant.search.candidates import (
    BASELINE_METHOD,
    MAX_ERRORS,
    SYMMETRIC,
    switched_recipe,
    with_switch,
)
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.fidelity import FidelityScore
from npumake.quant.search.figures import encoded, figures, score_of
from npumake.quant.search.recipe import Recipe, RecipeTrial
from npumake.quant.search.sensitive_tensors import find_sensitive_tensors

MAX_FINALISTS = 2
MAX_LOSS_RATIO = 2.0
MIN_GAIN = 0.05  # share of the loss; less may be chance over few samples
BEYOND_LIMITS = (0.3, 1.0)  # shares of int16 beyond the limit that a search shows, too
ASYMMETRIC = "asymmetric"
TRUSTED_SWITCHES = (EVEN, BIAS)  # kept unless the loss exceeds MAX_ERRORS
LIKELY_SWITCHES = ("round_weights",)  # kept for any gain beyond its error
COSTLY_SWITCHES = ("equalize", MIGRATE)  # kept for MIN_GAIN by MAX_ERRORS
FINER_SWITCHES = (
    WIDENING_ANSWERS,
    WIDENING_SENSITIVE,
)  # kept for MIN_GAIN, whatever the error


class Best(NamedTuple):
    """The best recipe so far, and its figure."""

    recipe: Recipe
    figure: FidelityScore


def best_method(
    candidates: Sequence[Recipe],
    evaluator: Evaluator,
    first: Sequence[str] = (),
    then: Sequence[str] = (),
    rejected: Sequence[Recipe] = (),
) -> Best:
    """The candidate with the closest outputs, with those of the switches `first` that bring it
    closer, and with one of `then` where that brings a finalist closer. `rejected` recipes are among
    its trials, and never chosen."""
    measured = track(figures(candidates, evaluator), "recipe", len(candidates))
    rows = [Best(*row) for row in zip(candidates, measured, strict=True)]
    narrow = [row for row in rows if WIDENING not in row.recipe.switches] or rows
    best = _closest(rows, _closest(narrow, _plainest(narrow)))
    trials = [_trial(row, evaluator, row is best) for row in rows]
    trials += [_trial(Best(r, evaluator.figure(r)), evaluator, is_kept=False) for r in rejected]
    alike = rows if WIDENING in best.recipe.switches else narrow
    switched = best_switches(_with_trials(best, trials), first, evaluator)
    best, trials = switched, [*switched.recipe.trials]
    finalists = [*product(_finalists(alike, best), then)]
    corrected = [with_switch(row.recipe, name) for row, name in finalists]
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
    tried = switched_recipe(recipe, document["name"], evaluator)
    if tried is None or _named(tried, evaluator) in _tried(recipe):
        return encoded(None)
    return encoded(digest.plain(Best(tried, evaluator.figure(tried))._asdict()))


def _tried(recipe: Recipe) -> set[str]:
    return {trial.what for trial in recipe.trials}


def with_trials_beyond(recipe: Recipe, evaluator: Evaluator) -> Recipe:
    """The recipe with trials of more int16 than the limit allows, of which none is kept: they show
    what a larger limit would bring."""
    limit, switches = evaluator.int16_limit, with_switch(recipe, WIDENING_SENSITIVE).switches
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
    if name in TRUSTED_SWITCHES:
        return tried.close != stands.close and tried.is_as_close(stands, MAX_ERRORS)
    if name in LIKELY_SWITCHES and tried.gains(stands):
        return True
    if name in FINER_SWITCHES and tried.gives_back(stands, MIN_GAIN):
        return True
    unties = name == WIDENING_ANSWERS and tried.unties(stands, MIN_GAIN)
    errors = MAX_ERRORS if name in COSTLY_SWITCHES else 1.0
    return unties or tried.helps(stands, MIN_GAIN, errors)


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


def _named(recipe: Recipe, evaluator: Evaluator) -> str:
    own = recipe.symmetric == evaluator.target.activations.symmetric
    scheme = SYMMETRIC if recipe.symmetric else ASYMMETRIC
    named = " + ".join((recipe.named, *(() if own else (scheme,)), *recipe.switches))
    count = len({*recipe.wide, *recipe.sensitive})
    return f"{named} (int16: {count} tensors)" if count else named
