"""findings: the data of one target's report: errors by node, and both models' outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npumake.compilers.handover import Handover
from npumake.custom.operators import declared
from npumake.data.samples import Samples
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.diagnosis.local_error import local_losses
from npumake.evaluate.calibration_fit import CalibrationFit
from npumake.evaluate.figures import EvaluationResult
from npumake.evaluate.verdict import Verdict
from npumake.graph import Graph
from npumake.project.files import SourceFiles
from npumake.project.sections import CodeFiles, Input, Report
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.form import in_form
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.search.recipe import Recipe
from npumake.report.estimate import estimate_of
from npumake.report.findings import Findings, TargetFindings
from npumake.report.findings import findings as target_findings
from npumake.report.sample_views import ModelPair, sample_views
from npumake.report.tensors import activation_channels, distributions, weight_channels
from npumake.stages.compiled import Compiled
from npumake.targets.target import Target


def findings(
    optimized_float: Graph,
    samples: Samples,
    statistics: Statistics,
    recipe: Recipe,
    calibrated: Graph,
    quantized: Graph,
    compiled: Compiled,
    compiled_check: CompiledCheck,
    comparison: Comparison,
    target: Target,
    inputs: Mapping[str, Input],
    sources: SourceFiles,
    report: Report,
    custom_operators: Sequence[CodeFiles] = (),
    evaluation: EvaluationResult | None = None,
    calibration_fit: CalibrationFit | None = None,
    verdict: Verdict | None = None,
    handover: Handover | None = None,
) -> Findings:
    operators = declared(custom_operators, sources)
    own = in_form(optimized_float, target)
    real, statistics = rescaled(own, recipe.factors), statistics.of(observed_tensors(own))
    if recipe.factors:  # the statistics are of unscaled tensors
        statistics = observe(real, samples, operators)
    kind = next(iter(inputs.values())).type if len(inputs) == 1 else None
    measured = TargetFindings(
        _with_fit(comparison, calibration_fit),
        recipe,
        local_losses(real, calibrated, quantized, samples, target, operators),
        distributions(statistics, recipe),
        activation_channels(statistics),
        weight_channels(real),
        sample_views(ModelPair(real, quantized), samples, report.samples, target, operators, kind),
        evaluation,
        verdict,
        None if handover else estimate_of(compiled.data, target),
        compiled_check,
    )
    return target_findings(real, measured)


def _with_fit(comparison: Comparison, fit: CalibrationFit | None) -> Comparison:
    """The comparison with the notes on its calibration set."""
    return replace(comparison, notes=(*comparison.notes, *(fit.notes if fit else ())))
