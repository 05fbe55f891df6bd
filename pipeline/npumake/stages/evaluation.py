"""evaluation: the task scores of all artifacts, side by side.

Each artifact's score is a stage of its own, so a change to one artifact reruns one score.
"""

from __future__ import annotations

from npumake.evaluate.figures import EvaluationResult, Figures
from npumake.targets.target import Target


def evaluation(
    float_score: Figures,
    target: Target,
    calibrated_score: Figures | None = None,
    quantized_score: Figures | None = None,
    compiled_score: Figures | None = None,
) -> EvaluationResult:
    scores = (float_score, calibrated_score, quantized_score, compiled_score)
    return EvaluationResult(target.name, tuple(score for score in scores if score is not None))
