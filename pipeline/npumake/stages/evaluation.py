"""evaluation: the task scores of all artifacts, side by side.

Each artifact's score is a stage of its own, so a change to one artifact reruns one score.
"""

from __future__ import annotations

from npumake.evaluate.figures import EvaluationResult, Figures
from npumake.targets.target import Target


def evaluation(scores: tuple[Figures, ...], target: Target) -> EvaluationResult:
    return EvaluationResult(target.name, scores)
