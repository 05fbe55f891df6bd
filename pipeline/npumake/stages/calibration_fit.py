"""calibration_fit: whether the calibration set represents the evaluation set; findings as notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npumake.custom.operators import declared
from npumake.data.samples import Samples
from npumake.evaluate import calibration_fit as fit
from npumake.evaluate.artifact_scores import dataset_for
from npumake.evaluate.calibration_fit import CalibrationFit, EvaluationData
from npumake.graph import Graph
from npumake.project.files import SourceFiles
from npumake.project.sections import CodeFiles, Evaluation, Files, Input
from npumake.quant.calibration.statistics import Statistics


def calibration_fit(
    original_float: Graph,
    optimized_float: Graph,
    samples: Samples,
    statistics: Statistics,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
) -> CalibrationFit:
    where = dataset_for(original_float, inputs, data, evaluation, sources, custom_operators)
    files = tuple(file for item in where.items for file in item.files)
    chosen = EvaluationData(where.samples(fit.MAX_SAMPLES), files)
    operators = declared(custom_operators, sources)
    return fit.calibration_fit(optimized_float, statistics, samples, chosen, sources, operators)
