"""Trials for an unmet gate: the model quantized in other ways and measured again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from npumake.custom.operators import Operators
from npumake.data.samples import Samples, made_up
from npumake.engine.lower import lowered
from npumake.evaluate.artifact_scores import EvaluationSet
from npumake.evaluate.gates import GateCondition
from npumake.evaluate.suggestions import Measure, best_suggestion, demands, promotions
from npumake.evaluate.verdict import MAX_NODES, GateResult, GateSuggestion, NodeLoss
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.precision.schemes import with_scheme
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.evaluator import Evaluator
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.type_judge import judge
from npumake.targets.target import Target


@dataclass(frozen=True)
class TrialModel:
    """The float model, with everything needed to quantize it in another way."""

    graph: Graph
    recipe: Recipe
    samples: Samples
    target: Target
    operators: Operators
    quantization: Quantization

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to try: a model with scales of its own keeps them."""
        return self.recipe.method == LOAD or not self.samples or made_up(self.samples)

    def quantized(self, quantization: Quantization) -> Graph:
        """The model in Q/DQ form."""
        grids = with_scheme(self.target, quantization)
        bench = Evaluator(self.graph, self.samples, self.operators, grids, quantization)
        return bench.model(self.recipe)


def at_task(dataset: EvaluationSet, name: str) -> Callable[[Graph], float]:
    """Measures the figure `name` of a graph in onnxruntime."""
    return lambda graph: dataset.of_graph("trial", graph).by_name[name]


@dataclass(frozen=True)
class GateTrials:
    """`losers` are the nodes by loss, largest first, `on_cpu` those on the CPU. `unlike` says how
    the `dataset` differs from the calibration data; empty if it does not."""

    model: TrialModel
    losers: Sequence[NodeLoss]
    on_cpu: Sequence[NodeLoss]
    dataset: EvaluationSet | None
    unlike: str = ""

    def cosine(self, _: GateCondition) -> Measure:
        model = self.model
        score = judge(model.graph, model.recipe, model.samples, model.target, model.operators)
        return lambda quantization: score(quantization).cosine

    def metric(self, condition: GateCondition) -> Measure:
        assert self.dataset is not None
        measure = at_task(self.dataset, str(condition.metric))
        return lambda quantization: measure(self.model.quantized(quantization))

    def cpu_nodes(self, _: GateCondition) -> Measure:
        target = self.model.target

        def measure(quantization: Quantization) -> float:
            graph = with_integer_weights(self.model.quantized(quantization))
            program = lowered(graph, target.rounding, target.runnable)
            return -float(sum(step.op == "onnx" for step in program.instructions))

        return measure


def gate_result(condition: GateCondition, trials: GateTrials) -> GateResult:
    """The result of a gate; if unmet, with nodes and a suggestion."""
    if condition.met:
        return GateResult(condition.number, condition.what, True)
    if condition.kind not in MEASURES:
        return GateResult(condition.number, condition.what, False)
    if condition.kind == "metric" and trials.unlike:
        return GateResult(condition.number, condition.what, False, unlike=trials.unlike)
    is_placement = condition.kind == "cpu_nodes"
    worst = trials.on_cpu if is_placement else trials.losers
    suggestion = (
        None if trials.model.is_fixed else _suggestion(condition, trials, [b.node for b in worst])
    )
    return GateResult(condition.number, condition.what, False, tuple(worst[:MAX_NODES]), suggestion)


def _suggestion(
    condition: GateCondition, trials: GateTrials, names: Sequence[str]
) -> GateSuggestion | None:
    model = trials.model
    measure = MEASURES[condition.kind](trials, condition)
    if condition.kind != "cpu_nodes":
        candidates = promotions(model.graph, model.target, model.quantization, names)
        return best_suggestion(measure, model.quantization, candidates, condition.threshold)
    candidates = demands(model.quantization, names)
    suggestion = best_suggestion(measure, model.quantization, candidates, condition.threshold)
    return suggestion and replace(
        suggestion, before=0.0 - suggestion.before, after=0.0 - suggestion.after
    )


MEASURES: Mapping[str, Callable[[GateTrials, GateCondition], Measure]] = {
    "cosine": GateTrials.cosine,
    "metric": GateTrials.metric,
    "cpu_nodes": GateTrials.cpu_nodes,
}
