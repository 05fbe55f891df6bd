"""Candidates: recipes that a search measures, completed by what their switches decide.

even channels   EVEN, with `max`, before the methods: one of TRUSTED_SWITCHES (search.trials)
gated           with MIGRATE, where that evens a self-gated activation out; alone, where the loss of
                BASELINE_METHOD falls by MIN_GATED_GAIN: others starve likewise
int16           with WIDENING, where channels are uneven
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npumake import digest
from npumake.digest import Json
from npumake.project.sections import Method
from npumake.quant.calibration.channel_imbalance import uneven_tensors
from npumake.quant.correction.corrections import (
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
from npumake.quant.search.figures import figures
from npumake.quant.search.int16_tensors import int16_tensors
from npumake.quant.search.methods import plain_recipe
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.sensitive_tensors import find_sensitive_tensors

BASELINE_METHOD: Method = "max"
SYMMETRIC = "symmetric"
MIN_GATED_GAIN = 0.5  # share of the loss
MAX_ERRORS = 2.0  # standard errors that a trusted switch may lose, and a costly one has to gain
# These switches change the ranges, or the types that use them.
REFITTING_SWITCHES = (SYMMETRIC, *RESCALING, WIDENING, WIDENING_ANSWERS, WIDENING_SENSITIVE)


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


def with_switch(recipe: Recipe, name: str) -> Recipe:
    if name == SYMMETRIC:
        return replace(recipe, symmetric=True)
    on = (*recipe.switches, name)
    return replace(recipe, switches=tuple(switch for switch in SWITCHES if switch in on))


def switched_recipe(recipe: Recipe, name: str, evaluator: Evaluator) -> Recipe | None:
    """The recipe with the switch; None where that changes nothing."""
    if name in recipe.switches:
        return None
    tried = with_switch(recipe, name)
    if name not in REFITTING_SWITCHES:
        return tried
    base = evaluator.rescaled_model(tried.switches)
    plainly = refit_recipe(replace(tried, wide=(), sensitive=()), base, evaluator.calibration)
    tried = complete_recipe(plainly, tried.switches, base, evaluator)
    return None if _effects(tried) == _effects(recipe) else tried


def with_int16_candidates(
    candidates: Sequence[Recipe], base: RescaledModel, evaluator: Evaluator
) -> list[Recipe]:
    """The candidates, then those with int16 around uneven tensors."""
    switches = with_switch(candidates[0], WIDENING).switches
    wide = [complete_recipe(candidate, switches, base, evaluator) for candidate in candidates]
    return [*candidates, *(w for w, c in zip(wide, candidates, strict=True) if w.wide != c.wide)]


def with_even_channels(
    switches: tuple[str, ...], symmetric: bool, evaluator: Evaluator
) -> tuple[tuple[str, ...], tuple[Recipe, ...]]:
    """The switches, with EVEN where it changes something and is kept, and the rejected recipe of
    BASELINE_METHOD; none where EVEN changes nothing."""
    base = evaluator.rescaled_model(switches)
    method = replace(evaluator.calibration, method=BASELINE_METHOD, recipe="plain")
    plain = plain_recipe(base.graph, base.statistics, method, symmetric)
    plain = complete_recipe(plain, switches, base, evaluator)
    even = switched_recipe(plain, EVEN, evaluator)
    if even is None:
        return switches, ()
    before, after = figures((plain, even), evaluator)
    return (
        (even.switches, (plain,)) if after.is_as_close(before, MAX_ERRORS) else (switches, (even,))
    )


def with_gated_candidates(
    candidates: Sequence[Recipe], evaluator: Evaluator
) -> tuple[list[Recipe], tuple[Recipe, ...]]:
    """The candidates, then those with MIGRATE where that evens a self-gated activation out: a
    method chosen while its channels starve is chance. Where BASELINE_METHOD gains MIN_GATED_GAIN
    by it, those with MIGRATE alone, and the rejected recipe."""
    base = evaluator.rescaled_model(candidates[0].switches)
    uneven = uneven_tensors(base.graph, base.statistics)
    if not passes_gates(base.graph, evaluator.target.weights, uneven):
        return [*candidates], ()
    switched = [(recipe, switched_recipe(recipe, MIGRATE, evaluator)) for recipe in candidates]
    pairs = [(recipe, gated) for recipe, gated in switched if gated is not None]
    every = [gated for _, gated in pairs]
    baseline = next((pair for pair in pairs if pair[0].method == BASELINE_METHOD), None)
    if baseline is not None:
        before, after = figures(baseline, evaluator)
        if after.helps(before, MIN_GATED_GAIN):
            return every, (baseline[0],)
    return [*candidates, *every], ()


def _effects(recipe: Recipe) -> Json:
    return digest.plain((recipe.symmetric, recipe.factors, recipe.wide, recipe.sensitive))
