"""verdict: every gate with its measured value; for an unmet one the causes and a suggestion.

The causes are the nodes with the largest losses of their own. A suggestion has been tried: the
model was quantized that way and measured again, in float with Q/DQ. If evaluation data are clipped
and calibration data are not, the calibration data are the cause and no precision helps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npumake.compilers.handover import Handover
from npumake.custom.operators import Operators, declared
from npumake.data.samples import Samples
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.diagnosis.local_error import local_losses
from npumake.debug.diagnosis.rank_causes import rank_causes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.evaluate.artifact_scores import EvaluationSet, dataset_for
from npumake.evaluate.figures import Figures
from npumake.evaluate.gate_trials import GateTrials, TrialModel, gate_result
from npumake.evaluate.gates import BuildFigures, gate_condition
from npumake.evaluate.verdict import GateResult, NodeLoss, Verdict
from npumake.graph import Graph
from npumake.kernels.measure import worst
from npumake.perf.latency import Latency, file_latency
from npumake.project.files import SourceFiles
from npumake.project.sections import CodeFiles, Evaluation, Files, Gate, Input, Quantization
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.form import in_form
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.recipe import Recipe
from npumake.stages.compiled import Compiled
from npumake.targets.target import Target

LOOKS = 4  # pictures


def verdict(
    original_float: Graph,
    optimized_float: Graph,
    samples: Samples,
    recipe: Recipe,
    calibrated: Graph,
    quantized: Graph,
    compiled: Compiled,
    comparison: Comparison,
    target: Target,
    gates: tuple[Gate, ...],
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
    quantization: Quantization = DEFAULT,
    evaluation: Evaluation | None = None,
    float_score: Figures | None = None,
    calibrated_score: Figures | None = None,
    quantized_score: Figures | None = None,
    compiled_score: Figures | None = None,
    handover: Handover | None = None,
) -> Verdict:
    scores = (float_score, calibrated_score, quantized_score, compiled_score)
    found = _measured(scores, comparison, None if handover else _latency(compiled, target, gates))
    wishes = [gate_condition(gate, index, found) for index, gate in enumerate(gates)]
    if all(wish.met for wish in wishes):
        return Verdict(target.name, tuple(GateResult(w.number, w.what, True) for w in wishes))
    operators, dataset = declared(custom_operators, sources), None
    if evaluation is not None:
        dataset = dataset_for(original_float, inputs, data, evaluation, sources, custom_operators)
    own = in_form(optimized_float, target)
    real = rescaled(own, recipe.factors)
    losses = local_losses(real, calibrated, quantized, samples, target, operators)
    losers = [NodeLoss(*loss) for loss in losses if loss.lost > 0]
    on_cpu = [NodeLoss(row.node, None, row.origin) for row in _on_cpu(comparison)]
    model = TrialModel(own, recipe, samples, target, operators, quantization)
    unlike = "" if dataset is None else _unlike(calibrated, samples, dataset, operators)
    trying = GateTrials(model, losers, on_cpu, dataset, unlike)
    return Verdict(target.name, tuple(gate_result(wish, trying) for wish in wishes))


def _unlike(graph: Graph, samples: Samples, dataset: EvaluationSet, operators: Operators) -> str:
    """What is cut off of what is evaluated and not of the data to calibrate with; empty where
    nothing is."""
    calibrated = ModelUnderTest(graph, samples, operators, data_num=LOOKS)
    known = {one.node for one in rank_causes(calibrated) if one.is_fault}
    first = rank_causes(ModelUnderTest(graph, dataset.samples(LOOKS), operators))[:1]
    return "".join(
        f"{one.node}: of what is evaluated {one.cause}, of the calibration data they are not"
        for one in first
        if one.is_fault and one.is_clipped and one.node not in known
    )


def _latency(compiled: Compiled, target: Target, gates: Sequence[Gate]) -> Latency | None:
    """Only where a gate asks: a file is not read for nothing."""
    if all(gate.max_latency_ms is None for gate in gates):
        return None
    return file_latency(compiled.data, target)


def _measured(
    scores: Sequence[Figures | None], comparison: Comparison, latency: Latency | None
) -> BuildFigures:
    known = [score for score in scores if score is not None]
    least = worst(output.cosine for output in comparison.outputs)
    cosine = least if comparison.samples else None
    on_cpu = len(_on_cpu(comparison))
    if latency is None:
        return BuildFigures(known, cosine, on_cpu)
    takes = (latency.milliseconds, latency.is_bound, latency.interval)
    return BuildFigures(known, cosine, on_cpu, *takes)


def _on_cpu(comparison: Comparison) -> list[NodeRow]:
    return [row for row in comparison.of_graph if row.subgraph is None]
