"""verdict: every gate against its measurement; for an unmet gate, the causing nodes and a remedy.

A blamed node has one of the largest errors of its own. A suggestion has been tried: the model was
quantized that way and measured again, in float with Q/DQ. If evaluation data is clipped, the
calibration data differs from it, and no other type would help.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.diagnosis.local_error import local_losses
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.evaluate.artifact_scores import EvaluationSet
from npumake.evaluate.figures import Figures
from npumake.evaluate.gate_trials import GateTrials, TrialModel, gate_result
from npumake.evaluate.gates import BuildFigures, gate_condition
from npumake.evaluate.verdict import GateResult, NodeLoss, Verdict
from npumake.graph import Graph
from npumake.kernels.measure import worst
from npumake.perf.latency import Latency, file_latency
from npumake.project.sections import Gate, Quantization
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.model_graphs import ModelGraphs
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

DIAGNOSIS_SAMPLES = 4


def verdict(
    graphs: ModelGraphs,
    samples: Samples,
    recipe: Recipe,
    comparison: Comparison,
    target: Target,
    gates: tuple[Gate, ...],
    own_file: bytes | None,
    operators: Operators = NO_OPERATORS,
    quantization: Quantization = DEFAULT,
    dataset: EvaluationSet | None = None,
    scores: tuple[Figures, ...] = (),
) -> Verdict:
    figures = _measured(scores, comparison, _latency(own_file, target, gates))
    wishes = [gate_condition(gate, index, figures) for index, gate in enumerate(gates)]
    if all(wish.met for wish in wishes):
        return Verdict(target.name, tuple(GateResult(w.number, w.what, True) for w in wishes))
    calibrated = graphs.calibrated
    losses = local_losses(graphs.real, calibrated, graphs.quantized, samples, target, operators)
    losers = [NodeLoss(*loss) for loss in losses if loss.lost > 0]
    on_cpu = [NodeLoss(row.node, None, row.origin) for row in _on_cpu(comparison)]
    model = TrialModel(graphs.trained, recipe, samples, target, operators, quantization)
    unlike = "" if dataset is None else _unlike(calibrated, samples, dataset, operators)
    trying = GateTrials(model, losers, on_cpu, dataset, unlike)
    return Verdict(target.name, tuple(gate_result(wish, trying) for wish in wishes))


def _unlike(graph: Graph, samples: Samples, dataset: EvaluationSet, operators: Operators) -> str:
    """The clipping of evaluation data but not of calibration data; empty if nothing is."""
    calibrated = ModelUnderTest(graph, samples, operators, data_num=DIAGNOSIS_SAMPLES)
    faulty = {cause.node for cause in rank_causes(calibrated) if cause.is_fault}
    first = rank_causes(ModelUnderTest(graph, dataset.samples(DIAGNOSIS_SAMPLES), operators))[:1]
    return "".join(
        f"{cause.node}: in the evaluation data {cause.cause}, in the calibration data not"
        for cause in first
        if cause.is_fault and cause.is_clipped and cause.node not in faulty
    )


def _latency(own_file: bytes | None, target: Target, gates: Sequence[Gate]) -> Latency | None:
    """The latency of the file, only if a gate needs it."""
    if own_file is None or all(gate.max_latency_ms is None for gate in gates):
        return None
    return file_latency(own_file, target)


def _measured(
    measured: Sequence[Figures], comparison: Comparison, latency: Latency | None
) -> BuildFigures:
    min_cosine = worst(output.cosine for output in comparison.outputs)
    cosine = min_cosine if comparison.samples else None
    on_cpu = len(_on_cpu(comparison))
    if latency is None:
        return BuildFigures(measured, cosine, on_cpu)
    takes = (latency.milliseconds, latency.is_bound, latency.interval)
    return BuildFigures(measured, cosine, on_cpu, *takes)


def _on_cpu(comparison: Comparison) -> list[NodeRow]:
    return [row for row in comparison.of_graph if row.subgraph is None]
