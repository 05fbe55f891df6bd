"""findings: the data of one target's report: errors by node, and both models' outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.diagnosis.local_error import local_losses
from npumake.detection.notes import labels_of
from npumake.evaluate.calibration_fit import CalibrationFit
from npumake.evaluate.figures import EvaluationResult
from npumake.evaluate.verdict import Verdict
from npumake.project.sections import Input, Report
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.search.model_graphs import ModelGraphs
from npumake.quant.search.recipe import Recipe
from npumake.report.estimate import estimate_of
from npumake.report.findings import Findings, TargetFindings
from npumake.report.findings import findings as target_findings
from npumake.report.sample_views import ModelPair, sample_views
from npumake.report.tensors import activation_channels, distributions, weight_channels
from npumake.targets.target import Target


class TaskResults(NamedTuple):
    """The results of the model at its task, as far as the project has an evaluation and gates."""

    evaluation: EvaluationResult | None
    calibration_fit: CalibrationFit | None
    verdict: Verdict | None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Those of the evaluation's labels; () without an evaluation."""
        return self.evaluation.rows[0].class_names if self.evaluation else ()


def task_results_of(
    evaluation: EvaluationResult | None = None,
    calibration_fit: CalibrationFit | None = None,
    verdict: Verdict | None = None,
) -> TaskResults:
    return TaskResults(evaluation, calibration_fit, verdict)


def findings(
    graphs: ModelGraphs,
    samples: Samples,
    statistics: Statistics,
    recipe: Recipe,
    comparison: Comparison,
    compiled_check: CompiledCheck,
    own_file: bytes | None,
    task_results: TaskResults,
    target: Target,
    inputs: Mapping[str, Input],
    report: Report,
    operators: Operators = NO_OPERATORS,
) -> Findings:
    real, calibrated, quantized = graphs.real, graphs.calibrated, graphs.quantized
    statistics = statistics.of(observed_tensors(graphs.trained))
    if recipe.factors:  # the statistics are of unscaled tensors
        statistics = observe(real, samples, operators)
    pair = ModelPair(real, quantized, labels_of(quantized) or task_results.class_names)
    kind = next(iter(inputs.values())).type if len(inputs) == 1 else None
    measured = TargetFindings(
        _with_fit(comparison, task_results.calibration_fit),
        recipe,
        local_losses(real, calibrated, quantized, samples, target, operators),
        distributions(statistics, recipe),
        activation_channels(statistics),
        weight_channels(real),
        sample_views(pair, samples, report.samples, target, operators, kind),
        task_results.evaluation,
        task_results.verdict,
        None if own_file is None else estimate_of(own_file, target),
        compiled_check,
    )
    return target_findings(real, measured)


def _with_fit(comparison: Comparison, fit: CalibrationFit | None) -> Comparison:
    """The comparison with the notes on its calibration set."""
    return replace(comparison, notes=(*comparison.notes, *(fit.notes if fit else ())))
