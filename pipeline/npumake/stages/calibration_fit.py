"""calibration_fit: whether the calibration set represents the evaluation set; findings as notes."""

from __future__ import annotations

from npumake.data.samples import Samples
from npumake.evaluate import calibration_fit as fit
from npumake.evaluate.artifact_scores import EvaluationSet
from npumake.evaluate.calibration_fit import CalibrationFit, EvaluationData
from npumake.graph import Graph
from npumake.project.files import SourceFiles
from npumake.quant.calibration.statistics import Statistics


def calibration_fit(
    optimized_float: Graph,
    samples: Samples,
    statistics: Statistics,
    dataset: EvaluationSet,
    sources: SourceFiles,
) -> CalibrationFit:
    files = tuple(file for item in dataset.items for file in item.files)
    chosen = EvaluationData(dataset.samples(fit.MAX_SAMPLES), files)
    operators = dataset.operators
    return fit.calibration_fit(optimized_float, statistics, samples, chosen, sources, operators)
