"""Output mix: for the tensors with most noise the range that disturbs the model's outputs least.

    noise[t, m]   1 - closeness with tensor t alone on the grid of method m (search.tensor_noise)

A method weighs what a tensor's own values lose. What counts is what the outputs lose: in the last
feature map of a detector the few values that make a face are a hundredth of all, and every method
that minimizes an error of the map cuts them off. So the tensors with NOISE_SHARE of all noise by
`max`, at most MAX_TENSORS, try every method, and one is chosen where it takes MIN_GAIN of the
noise; all others keep their extremes, which clip nothing. Every tensor is probed by itself, so the
tensors need no order. A switch of a search keeps the choice and fits its ranges again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from npumake.quant.search.evaluator import Evaluator, RescaledModel
from npumake.quant.search.methods import EXTREMES, OUTPUT_MIX, candidates, ranges_by_choice
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.tensor_noise import narrow_grid, probe_count, tensor_noise

NOISE_SHARE = 0.97
MAX_TENSORS = 24
PROBE_SAMPLES = 16
MIN_GAIN = 0.1


def with_choices(recipe: Recipe, base: RescaledModel, evaluator: Evaluator) -> Recipe:
    """An `output_mix` with the choices of `base`; any other recipe as it is."""
    if recipe.method != OUTPUT_MIX:
        return recipe
    mix = output_mix(base, evaluator, recipe.symmetric)
    return replace(recipe, ranges=mix.ranges, methods=mix.methods)


def output_mix(base: RescaledModel, evaluator: Evaluator, symmetric: bool) -> Recipe:
    """The ranges of `base`, with the method of each tensor that does not keep its extremes."""
    plain = replace(evaluator.calibration, recipe="plain")
    every = candidates(base.graph, base.statistics, plain, symmetric)
    by_name = {recipe.named: recipe for recipe in every}
    choices = _choices(by_name, base, evaluator)
    return ranges_by_choice(base.graph, base.statistics, plain, symmetric, choices)


def _choices(
    by_name: Mapping[str, Recipe], base: RescaledModel, evaluator: Evaluator
) -> dict[str, str]:
    """The method of each tensor for which another than EXTREMES takes MIN_GAIN of the noise."""

    def noise_of(method: str, names: Collection[str], count: int) -> dict[str, float]:
        grids = {name: narrow_grid(name, by_name[method], evaluator.target) for name in names}
        return tensor_noise(base, grids, evaluator, count) if grids else {}

    extremes = by_name[EXTREMES].ranges
    names = _noisiest(noise_of(EXTREMES, [*extremes], probe_count(max(len(extremes), 1))))
    count = min(PROBE_SAMPLES, len(evaluator.calibration_samples))
    best: dict[str, tuple[float, str]] = {
        name: (noise * (1.0 - MIN_GAIN), EXTREMES)
        for name, noise in noise_of(EXTREMES, names, count).items()
    }
    for method, recipe in by_name.items():
        differing = [name for name in names if recipe.ranges[name] != extremes[name]]
        for name, noise in noise_of(method, differing, count).items():
            best[name] = min(best[name], (noise, method), key=lambda pair: pair[0])
    return {name: method for name, (_, method) in best.items() if method != EXTREMES}


def _noisiest(noise: Mapping[str, float]) -> list[str]:
    """The fewest tensors with NOISE_SHARE of all noise, at most MAX_TENSORS."""
    order, enough = sorted(noise, key=lambda name: -noise[name]), math.fsum(noise.values())
    names: list[str] = []
    while order and len(names) < MAX_TENSORS:
        if math.fsum(noise[name] for name in names) >= NOISE_SHARE * enough:
            break
        names.append(order.pop(0))
    return names
