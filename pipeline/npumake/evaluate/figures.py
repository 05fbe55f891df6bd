"""Evaluation figures of one artifact, and of all artifacts side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from npumake import digest
from npumake.errors import CacheError

AT_SCORE = ("precision_at_25", "recall_at_25", "score")  # of detectors, beside their metric
DIGITS = 9  # the last bits of a float engine are not a result


@dataclass(frozen=True)
class Figures:
    """One artifact over `pictures` files. `by_name` has every figure of the metric's kind, in
    percent (0..100) except cosines and project metrics. Larger is better. `class_names` are those
    of the labels, in the order of the model's classes; () for labels that are numbers."""

    artifact: str
    pictures: int
    metric: str  # the configured metric
    by_name: Mapping[str, float]
    class_names: tuple[str, ...] = ()

    suffix: ClassVar[str] = ".json"

    @property
    def value(self) -> float:
        return self.by_name[self.metric]

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Figures:
        """Raises CacheError for a file that `save` did not write."""
        try:
            return figures_in(json.loads(path.read_bytes()))
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not figures: {error}", str(path)) from error


@dataclass(frozen=True)
class EvaluationResult:
    """The figures of all artifacts, the float model first."""

    target: str
    rows: tuple[Figures, ...]

    suffix: ClassVar[str] = ".json"

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> EvaluationResult:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            return cls(document["target"], tuple(map(figures_in, document["rows"])))
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not an evaluation: {error}", str(path)) from error


def scores_of(
    float_score: Figures,
    calibrated_score: Figures | None = None,
    quantized_score: Figures | None = None,
    compiled_score: Figures | None = None,
) -> tuple[Figures, ...]:
    """The scores of the artifacts that have one. The parameters are inputs of stages, by name."""
    scores = (float_score, calibrated_score, quantized_score, compiled_score)
    return tuple(score for score in scores if score is not None)


def figures_in(document: Any) -> Figures:
    names = {str(name): digest.number(value) for name, value in document["by_name"].items()}
    classes = tuple(map(str, document.get("class_names", ())))  # older builds have none
    figures = Figures(
        document["artifact"], document["pictures"], document["metric"], names, classes
    )
    if figures.metric not in names:
        raise KeyError(figures.metric)
    return figures
