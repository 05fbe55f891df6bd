"""Tensor noise: how much the outputs lose where one tensor alone is on its grid.

    noise[t]     1 - closeness where tensor t is quantized to 8 bits and all else is float, weights
                 too

A probe is a float model with one Q/DQ, over a few calibration samples: an order needs fewer samples
than a verdict. Holdout samples are not used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from npumake import digest
from npumake.distribution import distributed
from npumake.engine.float_session import float_session
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.downstream import change_groups, changed
from npumake.graph.qdq import Grid
from npumake.quant.correction.rescale_groups import Factors, rescaled
from npumake.quant.precision.grids import on_grid
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.search.evaluator import (
    Evaluator,
    ProbedModel,
    RescaledModel,
    before_softmax,
)
from npumake.quant.search.fidelity import FloatReference
from npumake.quant.search.figures import encoded
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

MAX_PROBE_SAMPLES = 8  # per tensor
MAX_PROBE_RUNS = 512  # over all tensors


def probe_count(tensors: int) -> int:
    """The number of samples for probes of so many tensors."""
    return min(MAX_PROBE_SAMPLES, max(2, MAX_PROBE_RUNS // tensors))


def narrow_grid(name: str, recipe: Recipe, target: Target) -> Grid:
    """The 8-bit grid of a tensor by the recipe."""
    own = replace(target, activations=replace(target.activations, symmetric=recipe.symmetric))
    return grids_of(*recipe.ranges[name], own).narrow


def tensor_noise(
    base: RescaledModel, grids: Mapping[str, Grid], evaluator: Evaluator, count: int
) -> dict[str, float]:
    """The noise of each tensor on which an output depends before its Softmax, over `count`
    calibration samples; cached in `base`."""
    keys = {name: (count, name, float(g.scale), int(g.zero_point)) for name, g in grids.items()}
    new = {name: grid for name, grid in grids.items() if keys[name] not in base.noise}
    if new:
        base.noise.update(
            (keys[name], noise) for name, noise in _probed(base, new, count, evaluator)
        )
    return {name: base.noise[key] for name, key in keys.items() if key in base.noise}


def _probed(
    base: RescaledModel, grids: Mapping[str, Grid], count: int, evaluator: Evaluator
) -> Iterator[tuple[str, float]]:
    """The noise of each tensor over `count` samples. Tensors that share the nodes before them are
    probed together, wherever that is."""
    real = before_softmax(base.graph)
    values = real.values()
    names = [name for name in grids if name in values]
    items = [
        encoded({"count": count, "factors": digest.plain(base.factors), "grids": rows})
        for group in change_groups(real, names, count)
        if (rows := [[name, *_row(grids[name])] for name in group])
    ]
    for rows_of_group in distributed(probe, items, evaluator=evaluator):
        yield from json.loads(rows_of_group)


def probe(evaluator: Evaluator, item: bytes) -> bytes:
    """[name, noise] of each tensor of one group, as JSON."""
    document = json.loads(item)
    grids = {name: _read_grid(*row) for name, *row in document["grids"]}
    model = _probed_model(evaluator, document["count"], document["factors"])

    def change(name: str, values: np.ndarray) -> np.ndarray:
        return on_grid(values, grids[name])

    results = changed(model.graph, [*grids], change, model.feeds, evaluator.operators)
    rows = [[name, 1.0 - model.reference.figure(out).close.all] for name, out in results]
    return encoded(rows)


def _probed_model(evaluator: Evaluator, count: int, factors: Factors) -> ProbedModel:
    """Kept in the evaluator for the next group."""
    key = (count, digest.of_document(factors))
    if key not in evaluator.probed_models:
        graph = before_softmax(rescaled(evaluator.graph, factors))
        samples = evaluator.calibration_samples
        feeds = [samples.read(n) for n in np.linspace(0, len(samples) - 1, count, dtype=int)]
        session = float_session(graph, evaluator.operators)
        outputs = list(side_by_side(lambda feed: session.run(None, feed), feeds))
        evaluator.probed_models.clear()
        evaluator.probed_models[key] = ProbedModel(graph, feeds, FloatReference(outputs))
    return evaluator.probed_models[key]


def _row(grid: Grid) -> tuple[float, int, str]:
    return float(grid.scale), int(grid.zero_point), str(grid.zero_point.dtype)


def _read_grid(scale: float, zero_point: int, dtype: str) -> Grid:
    return Grid(np.array(scale, np.float32), np.array(zero_point, dtype))
