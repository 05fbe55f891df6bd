"""Search: the method that keeps the outputs closest, of the whole model or of every tensor.

default   {kl, max, max_percentile} x {asymmetric, symmetric}, as far as the chip has the choice:
          each quantizes the model, which is run in float with Q/DQ; the cosine is that of the
          output that comes off worst
mix       for every tensor the method with the least noise, sum (x - q(x))**2 / sum x**2 over the
          bins of its statistics: no inference

The cosine is taken over the samples held out: every HELD_OUT-th, from the last of the first
HELD_OUT on, at most MOST of them; of fewer than 2 * HELD_OUT samples all. Their values are in the
statistics, but no choice is fitted to them other than which of the candidates wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pipeline.custom.operators import Operators
from pipeline.data.samples import Feed, Samples
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import Graph
from pipeline.kernels.measure import Agreement, agreement
from pipeline.progress import track
from pipeline.project.sections import Calibration, Method
from pipeline.quant.ranges import ranges
from pipeline.quant.recipe import Recipe, Trial, calibrated_with
from pipeline.quant.statistics import Statistics
from pipeline.quant.thresholds import noise
from pipeline.targets.target import Target

HELD_OUT = 4
MOST = 32
CANDIDATES: tuple[Method, ...] = ("kl", "max", "max_percentile")
MIXED: tuple[Method, ...] = (*CANDIDATES, "mse")
DIGITS = 6


def plain(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool
) -> Recipe:
    """What one method says; nothing is run."""
    found = ranges(graph, statistics, calibration, symmetric)
    return Recipe(calibration.method, symmetric, found)


def best(
    candidates: Sequence[Recipe],
    graph: Graph,
    samples: Samples,
    target: Target,
    operators: Operators,
) -> Recipe:
    """The candidate whose outputs are closest to the float model's, the first of equals."""
    feeds = [samples.read(index) for index in held_out(len(samples))]
    real = _outputs(float_session(graph, operators), feeds)
    cosines = [
        _cosine(real, _outputs(float_session(calibrated_with(graph, c, target), operators), feeds))
        for c in track(candidates, "recipe", len(candidates))
    ]
    winner = int(np.argmax(cosines))
    both = len({candidate.symmetric for candidate in candidates}) > 1
    trials = tuple(
        Trial(_named(candidate, both), cosine, index == winner)
        for index, (candidate, cosine) in enumerate(zip(candidates, cosines, strict=True))
    )
    return replace(candidates[winner], trials=trials)


def candidates(
    graph: Graph, statistics: Statistics, calibration: Calibration, schemes: Sequence[bool]
) -> Iterator[Recipe]:
    """What `default` tries, for grids that are symmetric or not as `schemes` says."""
    for symmetric in schemes:
        for method in CANDIDATES:
            yield plain(graph, statistics, replace(calibration, method=method), symmetric)


def mixed(
    graph: Graph, statistics: Statistics, calibration: Calibration, symmetric: bool
) -> Recipe:
    """Every tensor by the method that leaves the least noise, the first of equals."""
    by_method = {
        method: ranges(graph, statistics, replace(calibration, method=method), symmetric)
        for method in MIXED
    }
    methods: dict[str, Method] = {}
    for name, measured in statistics.tensors.items():
        pairs = [by_method[method][name] for method in MIXED]
        low, high = np.array(pairs, np.float64).T
        methods[name] = MIXED[int(np.argmin(noise(measured, low, high, symmetric)))]
    found = {name: by_method[method][name] for name, method in methods.items()}
    return Recipe("mix", symmetric, found, methods)


def held_out(count: int) -> range:
    """The numbers of the samples, of `count`, that the search is judged by."""
    if count < 2 * HELD_OUT:
        return range(count)
    return range(HELD_OUT - 1, count, HELD_OUT)[:MOST]


def _named(recipe: Recipe, both: bool) -> str:
    scheme = "symmetric" if recipe.symmetric else "asymmetric"
    return f"{recipe.method}, {scheme}" if both else recipe.method


def _outputs(session: FloatSession, feeds: Sequence[Feed]) -> list[list[np.ndarray]]:
    return list(side_by_side(lambda feed: session.run(None, feed), feeds))


def _cosine(real: list[list[np.ndarray]], made: list[list[np.ndarray]]) -> float:
    """Of the worst output, over all samples; rounded, so that no last bit decides."""
    totals = [
        sum((agreement(a[index], b[index]) for a, b in zip(real, made, strict=True)), Agreement())
        for index in range(len(real[0]))
    ]
    return round(min(total.cosine for total in totals), DIGITS)
