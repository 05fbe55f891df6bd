"""findings: what the report tells of one target: who loses how much, and what both models see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.compilers.handover import Handover
from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.debug.blame import local_losses
from pipeline.debug.compared import Comparison
from pipeline.debug.compiled_check import CompiledCheck
from pipeline.evaluate.calibration_fit import CalibrationFit
from pipeline.evaluate.figures import Evaluated
from pipeline.evaluate.verdict import Verdict
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import CodeFiles, Input, Report
from pipeline.quant.calibration.observe import observe
from pipeline.quant.calibration.statistics import Statistics
from pipeline.quant.precision.form import in_form
from pipeline.quant.precision.placement import observed
from pipeline.quant.recovery.rescale import rescaled
from pipeline.quant.search.recipe import Recipe
from pipeline.report.estimate import estimate_of
from pipeline.report.findings import Findings, Measured
from pipeline.report.findings import findings as told
from pipeline.report.shown import Pair, shown
from pipeline.report.tensors import activation_channels, distributions, weight_channels
from pipeline.stages.compiled import Compiled
from pipeline.targets.target import Target


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
    evaluation: Evaluated | None = None,
    calibration_fit: CalibrationFit | None = None,
    verdict: Verdict | None = None,
    handover: Handover | None = None,
) -> Findings:
    operators = declared(custom_operators, sources)
    own = in_form(optimized_float, target)
    real, statistics = rescaled(own, recipe.factors), statistics.of(observed(own))
    if recipe.factors:  # other tensors than those that were measured
        statistics = observe(real, samples, operators)
    kind = next(iter(inputs.values())).type if len(inputs) == 1 else None
    measured = Measured(
        _with_fit(comparison, calibration_fit),
        recipe,
        local_losses(real, calibrated, quantized, samples, target, operators),
        distributions(statistics, recipe),
        activation_channels(statistics),
        weight_channels(real),
        shown(Pair(real, quantized), samples, report.samples, target, operators, kind),
        evaluation,
        verdict,
        None if handover else estimate_of(compiled.data, target),
        compiled_check,
    )
    return told(real, measured)


def _with_fit(comparison: Comparison, fit: CalibrationFit | None) -> Comparison:
    """The comparison, with what speaks against its calibration set."""
    return replace(comparison, notes=(*comparison.notes, *(fit.notes if fit else ())))
