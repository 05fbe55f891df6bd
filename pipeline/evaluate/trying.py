"""Trying: the model quantized in other ways and measured again, where a gate is not met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.custom.operators import Operators
from pipeline.data.samples import Samples, made_up
from pipeline.detection.notes import metadata_of
from pipeline.engine.lower import lowered
from pipeline.engine.mixed import float_session
from pipeline.evaluate.gates import Asked
from pipeline.evaluate.mending import Measure, demands, mended, promotions
from pipeline.evaluate.scored import Ground
from pipeline.evaluate.verdict import MOST_BLAMED, Blamed, Judged, Mending
from pipeline.graph import Graph
from pipeline.project.sections import Quantization
from pipeline.quant.integers import with_integer_weights
from pipeline.quant.judge import judge
from pipeline.quant.loaded import LOAD
from pipeline.quant.recipe import Recipe
from pipeline.quant.schemes import with_scheme
from pipeline.quant.trials import Bench
from pipeline.targets.target import Target


@dataclass(frozen=True)
class Trying:
    """The model, in float, and all that is needed to quantize it in another way."""

    graph: Graph
    recipe: Recipe
    samples: Samples
    target: Target
    operators: Operators
    quantization: Quantization
    dataset: Ground | None

    @property
    def can(self) -> bool:
        """Whether there is anything to try: a model that brings its scales keeps them."""
        return self.recipe.method != LOAD and bool(self.samples) and not made_up(self.samples)

    def model(self, asked: Quantization) -> Graph:
        grids = with_scheme(self.target, asked.scheme)
        bench = Bench(self.graph, self.samples, self.operators, grids, asked)
        return bench.model(self.recipe)

    def cosine(self, _: str | None) -> Measure:
        score = judge(self.graph, self.recipe, self.samples, self.target, self.operators)
        return lambda asked: score(asked).cosine

    def metric(self, name: str | None) -> Measure:
        dataset = self.dataset
        assert dataset is not None
        assert name is not None

        def measure(asked: Quantization) -> float:
            made = self.model(asked)
            session = float_session(made, self.operators)
            return dataset.figures("trial", session, metadata_of(made)).by_name[name]

        return measure

    def cpu_nodes(self, _: str | None) -> Measure:
        def measure(asked: Quantization) -> float:
            made = with_integer_weights(self.model(asked))
            program = lowered(made, self.target.rounding, self.target.runnable)
            return -float(sum(step.op == "onnx" for step in program.instructions))

        return measure


def judged(
    wish: Asked, index: int, blamed: Sequence[Blamed], trying: Trying, metric: str | None
) -> Judged:
    """The gate, and where it is not met the advice; `blamed` are all nodes, the worst first."""
    if wish.met:
        return Judged(index, wish.what, True)
    mending = _mending(wish, blamed, trying, metric) if trying.can else None
    return Judged(index, wish.what, False, tuple(blamed[:MOST_BLAMED]), mending)


def _mending(
    wish: Asked, blamed: Sequence[Blamed], trying: Trying, metric: str | None
) -> Mending | None:
    names = [one.node for one in blamed]
    tried: Iterator[Quantization]
    if wish.kind == "cpu_nodes":
        tried = demands(trying.quantization, names)
    else:
        tried = promotions(trying.graph, trying.target, trying.quantization, names)
    return mended(MEASURES[wish.kind](trying, metric), trying.quantization, tried, wish.wanted)


MEASURES: Mapping[str, Callable[[Trying, str | None], Measure]] = {
    "cosine": Trying.cosine,
    "metric": Trying.metric,
    "cpu_nodes": Trying.cpu_nodes,
}
