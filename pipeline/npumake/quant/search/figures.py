"""Figures of recipes: each is a trial of its own, which any process can run (npumake.distribution).

A recipe and its figure travel as JSON, exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npumake import digest
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.digest import Json
from npumake.distribution import distributed
from npumake.graph import Graph
from npumake.project.sections import Calibration, Quantization
from npumake.quant.precision.form import in_form
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.fidelity import FidelitySamples, FidelityScore
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target


def evaluator_of(
    optimized_float: Graph,
    samples: Samples,
    calibration: Calibration,
    target: Target,
    operators: Operators = NO_OPERATORS,
    quantization: Quantization = DEFAULT,
) -> Evaluator:
    """The parameters are inputs of stages, by name. A model that runs in floats alone is not
    calibrated."""
    if calibration.method == LOAD:
        calibration = replace(calibration, method="skip")
    target = with_scheme(target, quantization)
    graph = in_form(optimized_float, target)
    return Evaluator(graph, samples, operators, target, quantization, calibration)


def figures(recipes: Sequence[Recipe], evaluator: Evaluator) -> Iterator[FidelityScore]:
    """The figure of each, in order."""
    items = [encoded(digest.plain(recipe)) for recipe in recipes]
    for result in distributed(figure, items, evaluator=evaluator):
        yield score_of(json.loads(result))


def figure(evaluator: Evaluator, item: bytes) -> bytes:
    """The figure of one recipe."""
    return encoded(digest.plain(evaluator.figure(Recipe.of_document(json.loads(item)))))


def encoded(document: Json) -> bytes:
    """As JSON of Python, which has NaN."""
    return json.dumps(document).encode()


def score_of(document: Json) -> FidelityScore:
    """The score of its plain document."""
    close, cosine, distributions = (
        FidelitySamples(document[name]["all"], tuple(document[name]["without"]))
        for name in ("close", "cosine", "distributions")
    )
    return FidelityScore(close, cosine, distributions, document["ties"], document["int16"])
