"""Methods: the ranges of a calibration method, for the whole model or for every tensor.

default   CANDIDATES, max_percentile of PERCENTILES and of the calibration's own, and the best of
          them symmetric, where the chip has the choice; found by trial (search.trials).
          `recipe: best` also tries BEST_CANDIDATES
mix       for every tensor the method with the least noise, sum (x - q(x))**2 over the bins of its
          statistics: no inference
output_mix  the extremes, and other methods where these disturb the outputs less
          (search.output_mix)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from npumake.borders.images import images
from npumake.graph import Graph, annotate, annotations_of
from npumake.project.sections import Calibration, Method, Quantization
from npumake.quant.calibration.ranges import int16_ranges, ranges
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.calibration.thresholds import noise
from npumake.quant.precision.precision_candidates import with_tensors
from npumake.quant.precision.precision_plan import MAX_NAMES_IN_NOTE
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.grid_assignment import grids_of, grids_of_image
from npumake.quant.qdq.insert import with_qdq
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

PERCENTILE: Method = "max_percentile"
PERCENTILES = (0.99995, 0.99999)
CANDIDATES: tuple[Method, ...] = ("kl", "max", PERCENTILE, "mse")
MIX: Method = "mix"
OUTPUT_MIX: Method = "output_mix"
EXTREMES: Method = "max"  # of `output_mix` where nothing else is chosen
NO_CHOICES: Mapping[str, str] = {}
BEST_CANDIDATES: tuple[Method, ...] = ("moving_average", MIX)  # of `recipe: best` besides


def calibrated_with(
    graph: Graph, recipe: Recipe, target: Target, quantization: Quantization
) -> Graph:
    """`graph` with the Q/DQ of the recipe, on the chip's grids."""
    target = with_scheme(target, quantization)
    target = replace(target, activations=replace(target.activations, symmetric=recipe.symmetric))
    grids = {
        name: grids_of(*interval, target, recipe.int16_ranges.get(name))
        for name, interval in recipe.ranges.items()
    }
    grids |= {name: grids_of_image(target) for name in images(graph)}
    calibrated = with_qdq(graph, grids, target, types_with(graph, recipe, quantization))
    notes = (
        *_wide_note("where 8 bits are too few", recipe.wide),
        *_wide_note("where 8 bits make most of the noise", recipe.sensitive),
    )
    if notes:
        annotate(calibrated, (*annotations_of(calibrated), *notes))
    return calibrated


def types_with(graph: Graph, recipe: Recipe, quantization: Quantization) -> Quantization:
    """`quantization` with the int16 tensors of the recipe."""
    return with_tensors(graph, quantization, (*recipe.wide, *recipe.sensitive))


def _wide_note(why: str, names: Sequence[str]) -> tuple[str, ...]:
    suffix = f" and {len(names) - MAX_NAMES_IN_NOTE} more" if len(names) > MAX_NAMES_IN_NOTE else ""
    shown_names = ", ".join(names[:MAX_NAMES_IN_NOTE])
    return (f"int16, {why}, {len(names)} tensors: {shown_names}{suffix}",) if names else ()


def plain_recipe(
    graph: Graph,
    statistics: Statistics,
    calibration: Calibration,
    symmetric: bool,
    choices: Mapping[str, str] = NO_CHOICES,
) -> Recipe:
    """The recipe of the method for the whole model or, for `mix`, of each tensor's own, or of the
    `choices` of `output_mix`."""
    if calibration.method == OUTPUT_MIX:
        return ranges_by_choice(graph, statistics, calibration, symmetric, choices)
    by_method = ranges_by_tensor if calibration.method == MIX else ranges_by_method
    return by_method(graph, statistics, calibration, symmetric)


def ranges_by_method(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool
) -> Recipe:
    """The recipe of one method; the model is not run."""
    by_tensor = ranges(graph, statistics, calibration, symmetric)
    method, share = calibration.method, calibration.percentile
    return Recipe(
        method,
        symmetric,
        by_tensor,
        int16_ranges=int16_ranges(graph, statistics),
        percentile=share if method == PERCENTILE else None,
    )


def candidates(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool
) -> Iterator[Recipe]:
    """The recipes that a search tries; `recipe: best` tries every method that clips otherwise."""
    own = calibration.percentile
    wider = BEST_CANDIDATES if calibration.recipe == "best" else ()
    for method in (*CANDIDATES, *wider):
        for share in sorted({own, *PERCENTILES}) if method == PERCENTILE else [own]:
            trial = replace(calibration, method=method, percentile=share)
            yield plain_recipe(graph, statistics, trial, symmetric)


def with_recipe_method(calibration: Calibration, recipe: Recipe) -> Calibration:
    """`calibration` with the method of the recipe."""
    share = calibration.percentile if recipe.percentile is None else recipe.percentile
    return replace(calibration, method=cast(Method, recipe.method), percentile=share)


def ranges_by_tensor(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool
) -> Recipe:
    """Every tensor by the method with the least noise, the first of equals."""
    by_method = {
        method: ranges(graph, statistics, replace(calibration, method=method), symmetric)
        for method in CANDIDATES
    }
    methods: dict[str, Method] = {}
    for name, measured in statistics.tensors.items():
        pairs = [by_method[method][name] for method in CANDIDATES]
        low, high = np.array(pairs, np.float64).T
        methods[name] = CANDIDATES[int(np.argmin(noise(measured, low, high, symmetric)))]
    by_tensor = {name: by_method[method][name] for name, method in methods.items()}
    return Recipe(
        "mix", symmetric, by_tensor, methods, int16_ranges=int16_ranges(graph, statistics)
    )


def ranges_by_choice(
    graph: Graph,
    statistics: Statistics,
    calibration: Calibration,
    symmetric: bool,
    choices: Mapping[str, str],
) -> Recipe:
    """The extremes of every tensor, but those of `choices` by the method named there, as in
    `Recipe.named`."""
    by_name = {
        name: ranges(graph, statistics, _with_named(calibration, name), symmetric)
        for name in {EXTREMES, *choices.values()}
    }
    by_tensor = {name: by_name[choices.get(name, EXTREMES)][name] for name in by_name[EXTREMES]}
    methods = {name: choices[name] for name in by_tensor if name in choices}
    widest = int16_ranges(graph, statistics)
    return Recipe(OUTPUT_MIX, symmetric, by_tensor, methods, int16_ranges=widest)


def _with_named(calibration: Calibration, name: str) -> Calibration:
    """`calibration` with the method, and the percentile, of `Recipe.named`."""
    method, _, share = name.partition(" ")
    percentile = float(share) if share else calibration.percentile
    return replace(calibration, method=cast(Method, method), percentile=percentile)
