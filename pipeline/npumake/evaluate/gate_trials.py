"""Trying: the model quantized in other ways and measured again, where a gate is not met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from npumake.custom.operators import Operators
from npumake.data.samples import Samples, made_up
from npumake.engine.lower import lowered
from npumake.evaluate.artifact_scores import EvaluationSet
from npumake.evaluate.gates import GateCondition
from npumake.evaluate.suggestions import Measure, demands, mended, promotions
from npumake.evaluate.verdict import MOST_BLAMED, Blamed, Judged, Mending
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
    """The model, in float, and all that is needed to quantize it in another way."""

    graph: Graph
    recipe: Recipe
    samples: Samples
    target: Target
    operators: Operators
    quantization: Quantization

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to try: a model that brings its scales keeps them."""
        return self.recipe.method == LOAD or not self.samples or made_up(self.samples)

    def quantized(self, asked: Quantization) -> Graph:
        """In Q/DQ form."""
        grids = with_scheme(self.target, asked)
        bench = Evaluator(self.graph, self.samples, self.operators, grids, asked)
        return bench.model(self.recipe)


def at_task(dataset: EvaluationSet, name: str) -> Callable[[Graph], float]:
    """The figure `name` of a graph, in onnxruntime."""
    return lambda graph: dataset.of_graph("trial", graph).by_name[name]


@dataclass(frozen=True)
class GateTrials:
    """The nodes to blame, all of them, the worst first; `dataset` where one is evaluated, and
    `unlike` where it is not what the model was calibrated with."""

    model: TrialModel
    losers: Sequence[Blamed]
    on_cpu: Sequence[Blamed]
    dataset: EvaluationSet | None
    unlike: str = ""

    def cosine(self, _: GateCondition) -> Measure:
        model = self.model
        score = judge(model.graph, model.recipe, model.samples, model.target, model.operators)
        return lambda asked: score(asked).cosine

    def metric(self, wish: GateCondition) -> Measure:
        assert self.dataset is not None
        measure = at_task(self.dataset, str(wish.metric))
        return lambda asked: measure(self.model.quantized(asked))

    def cpu_nodes(self, _: GateCondition) -> Measure:
        target = self.model.target

        def measure(asked: Quantization) -> float:
            made = with_integer_weights(self.model.quantized(asked))
            program = lowered(made, target.rounding, target.runnable)
            return -float(sum(step.op == "onnx" for step in program.instructions))

        return measure


def judged(wish: GateCondition, trying: GateTrials) -> Judged:
    """The gate, and where it is not met the advice."""
    if wish.met:
        return Judged(wish.number, wish.what, True)
    if wish.kind not in MEASURES:
        return Judged(wish.number, wish.what, False)
    if wish.kind == "metric" and trying.unlike:
        return Judged(wish.number, wish.what, False, unlike=trying.unlike)
    is_placement = wish.kind == "cpu_nodes"
    blamed = trying.on_cpu if is_placement else trying.losers
    mending = None if trying.model.is_fixed else _mending(wish, trying, [b.node for b in blamed])
    return Judged(wish.number, wish.what, False, tuple(blamed[:MOST_BLAMED]), mending)


def _mending(wish: GateCondition, trying: GateTrials, names: Sequence[str]) -> Mending | None:
    model = trying.model
    measure = MEASURES[wish.kind](trying, wish)
    if wish.kind != "cpu_nodes":
        tried = promotions(model.graph, model.target, model.quantization, names)
        return mended(measure, model.quantization, tried, wish.wanted)
    tried = demands(model.quantization, names)
    found = mended(measure, model.quantization, tried, wish.wanted)
    return found and replace(found, before=0.0 - found.before, after=0.0 - found.after)


MEASURES: Mapping[str, Callable[[GateTrials, GateCondition], Measure]] = {
    "cosine": GateTrials.cosine,
    "metric": GateTrials.metric,
    "cpu_nodes": GateTrials.cpu_nodes,
}
