"""Type judge: scores a model under other types, on holdout samples.

    cosine      of the worst output, over all samples
    agreement   the share of samples with the float model's argmax, top-1; of the worst output

The model runs in float with Q/DQ; each operator is within one step of the integers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from npumake import digest
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.errors import CacheError
from npumake.graph import Graph
from npumake.kernels.measure import Agreement, agreement, worst
from npumake.project.reader import built
from npumake.project.sections import Quantization
from npumake.quant.precision.form import in_form
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.fidelity import SampleOutputs
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

SCORE_DIGITS = 9  # rounds away the last bits of a float engine


@dataclass(frozen=True)
class Score:
    """The score of a model; `metric` is that of its task, if it was measured."""

    cosine: float
    agreement: float
    metric: float | None = None

    suffix: ClassVar[str] = ".json"

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Score:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            return cls(**document | {"cosine": digest.number(document["cosine"])})
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a score: {error}", str(path)) from error


Judge = Callable[[Quantization], Score]


def judge_of(
    optimized_float: Graph,
    recipe: Recipe,
    samples: Samples,
    target: Target,
    operators: Operators = NO_OPERATORS,
) -> Judge:
    """The parameters are inputs of stages, by name."""
    return judge(in_form(optimized_float, target), recipe, samples, target, operators)


def trial(type_judge: Judge, item: bytes) -> bytes:
    """The score of one quantization; both as JSON."""
    score = type_judge(built(Quantization, json.loads(item)))
    return json.dumps(digest.plain(score)).encode()


def judge(
    graph: Graph,
    recipe: Recipe,
    samples: Samples,
    target: Target,
    operators: Operators = NO_OPERATORS,
    at_task: Callable[[Graph], float] | None = None,
) -> Judge:
    """A function that scores the float `graph` under a quantization.

    The metric is the value of `at_task` for the calibrated graph. The float model runs once.
    """
    model = JudgedModel(graph, samples, target, operators)

    def score(quantization: Quantization) -> Score:
        calibrated, result = model.scored(recipe, quantization)
        return result if at_task is None else replace(result, metric=at_task(calibrated))

    return score


@dataclass(frozen=True)
class JudgedModel:
    """A float graph that recipes and quantizations are scored against; it runs once for all."""

    graph: Graph
    samples: Samples
    target: Target
    operators: Operators = NO_OPERATORS

    def scored(self, recipe: Recipe, quantization: Quantization) -> tuple[Graph, Score]:
        """The calibrated graph and its score. Raises GraphError, and ProjectError if the chip
        refuses the types."""
        grids = with_scheme(self.target, quantization)
        evaluator = Evaluator(self.graph, self.samples, self.operators, grids, quantization)
        calibrated = evaluator.model(recipe)
        return calibrated, score_outputs(self._real, evaluator.outputs(calibrated))

    @cached_property
    def _real(self) -> SampleOutputs:
        evaluator = Evaluator(self.graph, self.samples, self.operators, self.target, DEFAULT)
        return evaluator.float_outputs


def score_outputs(real: SampleOutputs, quantized: SampleOutputs) -> Score:
    outputs = range(len(real[0]))
    pairs = list(zip(real, quantized, strict=True))
    totals = [sum((agreement(a[i], b[i]) for a, b in pairs), Agreement()) for i in outputs]
    alike = [sum(int(a[i].argmax() == b[i].argmax()) for a, b in pairs) for i in outputs]
    cosine = worst(total.cosine for total in totals)
    return Score(round(cosine, SCORE_DIGITS), round(min(alike) / len(pairs), SCORE_DIGITS))
