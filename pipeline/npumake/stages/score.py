"""score: the task score of one artifact over the dataset.

One stage, fanned out over the artifacts:

    float         the trained model before any optimization: the reference for all others
    calibrated    in onnxruntime
    quantized     in onnxruntime: within a step of the chip
    compiled      the file, in exact integers or in its own runtime (compiled_model)
"""

from __future__ import annotations

from npumake.evaluate.artifact_scores import EvaluationSet, ScoredModel
from npumake.evaluate.batches import figures_of_batches
from npumake.evaluate.figures import Figures
from npumake.graph import Graph


def score(artifact: Graph | ScoredModel, artifact_name: str, dataset: EvaluationSet) -> Figures:
    return figures_of_batches(artifact, artifact_name, dataset)
