"""Modelwise: the search that hb_mapper and hb_compile call `default`.

    per_channel x asymmetric x (max with each percentile, then kl), the plainest first
    figure   the mean over the outputs of cosine(float, calibrated), for the first sample
    stop     at the first candidate whose figure reaches `similarity`, else the best of them

The ranges are those of all samples. Only switches of the project apply.

Sources: the D-Robotics PTQ guide ("the cosine similarity of the first calibration data output
node") and the logs of hb_mapper 1.24.3, which print the lists and .995. The logs do not say how
several outputs make one figure. The mean fits them: YOLO11n (mean .996, least .992) ends after one
pass over the samples, YOLOv8n (mean .994, first output .9996) does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from npumake import digest
from npumake.distribution import distributed, width
from npumake.engine.float_session import float_session
from npumake.errors import ProjectError, Route
from npumake.kernels.measure import Agreement, agreement
from npumake.progress import track
from npumake.project.sections import Calibration, Method
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import PER_CHANNEL
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.search.candidates import complete_recipe
from npumake.quant.search.evaluator import Evaluator, RescaledModel, rescale_model
from npumake.quant.search.figures import encoded
from npumake.quant.search.methods import PERCENTILE, ranges_by_method
from npumake.quant.search.recipe import Recipe, RecipeTrial
from npumake.targets.target import Target

MODELWISE: Method = "modelwise"
COSINE = "cosine-similarity"
FIGURE_DIGITS = 6  # rounds away the last bits of a float engine

# metric → its figure of one output, and 1 where more is better, -1 where less is
METRICS: dict[str, tuple[Callable[[Agreement], float], int]] = {
    COSINE: (lambda sums: sums.cosine, 1),
    "mse": (lambda sums: sums.mse, -1),
    "mae": (lambda sums: sums.absolute / sums.count, -1),
    "mre": (lambda sums: sums.mre, -1),
    "sqnr": (lambda sums: sums.sqnr_db, 1),
    "chebyshev": (lambda sums: sums.chebyshev, -1),
}
# method → its name in the logs of hb_mapper 1.24.3
LOG_NAMES = {PERCENTILE: "max-percentile:percentile={}", "kl": "kl:num_bin=1024,max_num_bin=16384"}


class Candidate(NamedTuple):
    """One combination; `percentile` is that of max_percentile."""

    method: Method
    percentile: float | None
    symmetric: bool
    per_channel: bool

    @property
    def logged(self) -> str:
        """Its name in the vendor's log."""
        name = LOG_NAMES.get(self.method, self.method).format(self.percentile)
        return name + ",per_channel" * self.per_channel + ",asymmetric" * (not self.symmetric)


def modelwise(evaluator: Evaluator, statistics: Statistics, switches: Sequence[str]) -> Recipe:
    """The candidate that the vendor's search selects; `statistics` are those of all tensors. Raises
    ProjectError for options that the chip lacks."""
    search = evaluator.calibration.modelwise
    _, sign = METRICS[search.metric]
    every = candidates(evaluator.calibration, evaluator.target)
    results: list[tuple[Recipe, RecipeTrial]] = []
    for result in track(_tried(every, evaluator, statistics, switches), "recipe", len(every)):
        results.append(result)
        if result[1].cosine >= search.similarity:
            break
    best = max(range(len(results)), key=lambda index: _order(sign * results[index][1].closeness))
    if results[-1][1].cosine >= search.similarity:
        best = len(results) - 1
    trials = tuple(replace(trial, kept=index == best) for index, (_, trial) in enumerate(results))
    return replace(results[best][0], trials=trials, selected=trials[best].what)


def _tried(
    every: Sequence[Candidate],
    evaluator: Evaluator,
    statistics: Statistics,
    switches: Sequence[str],
) -> Iterator[tuple[Recipe, RecipeTrial]]:
    """The recipe of each candidate and its trial, as many at once as run at a time."""
    items = [encoded({"candidate": candidate, "switches": switches}) for candidate in every]
    for start in range(0, len(items), width()):
        ahead = items[start : start + width()]
        inputs = {"evaluator": evaluator, "statistics": statistics}
        for result in distributed(candidate_trial, ahead, **inputs):
            document = json.loads(result)
            yield Recipe.of_document(document["recipe"]), RecipeTrial(**document["trial"])


def candidate_trial(evaluator: Evaluator, statistics: Statistics, item: bytes) -> bytes:
    """The recipe of one candidate and its trial, as JSON."""
    document = json.loads(item)
    candidate = Candidate(*document["candidate"])
    graph, operators = evaluator.graph, evaluator.operators
    as_it_is = RescaledModel(graph, statistics.of(observed_tensors(graph)), {})
    recipe = _standing(candidate, evaluator, as_it_is, document["switches"])
    first = evaluator.samples.read(0)
    expected, outputs = (
        float_session(model, operators).run(None, first)
        for model in (graph, evaluator.model(recipe))
    )
    sums = [agreement(a, b) for a, b in zip(expected, outputs, strict=True)]
    figure, _ = METRICS[evaluator.calibration.modelwise.metric]
    closeness, cosine = (_mean([*map(f, sums)]) for f in (figure, METRICS[COSINE][0]))
    trial = RecipeTrial(candidate.logged, closeness, cosine, kept=False)
    return encoded({"recipe": digest.plain(recipe), "trial": digest.plain(trial)})


def candidates(calibration: Calibration, target: Target) -> list[Candidate]:
    """The candidates in order, as far as the chip has them. Raises ProjectError if it has none."""
    search, chip = calibration.modelwise, target.activations
    channels = (True,) if calibration.per_channel else search.per_channel
    grid_kinds = search.asymmetric or (not chip.symmetric,)
    asymmetric = grid_kinds if calibration.symmetric is None else (not calibration.symmetric,)
    if not chip.per_channel and channels and all(channels):
        message = f"{target.name} has one scale for all channels of a feature map"
        raise ProjectError(message, Route("calibration.modelwise.per_channel"))
    if not chip.may_be_asymmetric and all(asymmetric):
        message = f"{target.name} has no zero points: its grids are symmetric"
        raise ProjectError(message, Route("calibration.modelwise.asymmetric"))
    combinations = [
        Candidate(method, share, not zero, channel)
        for channel, zero in product(sorted(channels), sorted(asymmetric))
        for method, share in _methods(calibration)
        if chip.per_channel >= channel and chip.may_be_asymmetric >= zero
    ]
    if not combinations:
        message = "nothing to try: one of the lists is empty"
        raise ProjectError(message, Route("calibration.modelwise"), "leave it out for the default")
    return combinations


def _methods(calibration: Calibration) -> Iterator[tuple[Method, float | None]]:
    for method in calibration.modelwise.methods:
        for share in calibration.modelwise.percentiles if method == "max" else ():
            yield ("max", None) if share == 1.0 else (PERCENTILE, share)
        if method != "max":
            yield method, None


def _standing(
    candidate: Candidate, evaluator: Evaluator, as_it_is: RescaledModel, switches: Sequence[str]
) -> Recipe:
    """The recipe of a candidate, from all samples."""
    others = tuple(name for name in switches if name != PER_CHANNEL)
    own = (PER_CHANNEL, *others) if candidate.per_channel else others
    base = rescale_model(evaluator, evaluator.samples, as_it_is, own)
    share = (
        evaluator.calibration.percentile if candidate.percentile is None else candidate.percentile
    )
    calibration = replace(evaluator.calibration, method=candidate.method, percentile=share)
    recipe = ranges_by_method(base.graph, base.statistics, calibration, candidate.symmetric)
    return complete_recipe(recipe, own, base, evaluator)


def _mean(figures: Sequence[float]) -> float:
    return round(float(np.mean(figures)), FIGURE_DIGITS) if figures else 1.0


def _order(figure: float) -> float:
    """NaN sorts last."""
    return -np.inf if np.isnan(figure) else figure
