"""Trials: a model scored under other types, each score kept in the store by its key.

The key is the document of a stage's: code, tools, target, the types, and the digests of the float
model, the recipe and the samples. So a search that was interrupted asks the same questions again,
and what was answered costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pipeline import digest
from pipeline.cache.publish import scratch
from pipeline.cache.store import Record
from pipeline.custom.operators import declared
from pipeline.data.samples import Samples, made_up
from pipeline.errors import ProjectError
from pipeline.graph import Graph
from pipeline.make.build import Build
from pipeline.make.maker import loaded
from pipeline.make.node import Node
from pipeline.progress import track
from pipeline.project.reader import built
from pipeline.project.sections import Quantization
from pipeline.quant import judge
from pipeline.quant.judge import Score
from pipeline.quant.loaded import LOAD
from pipeline.quant.mixed_precision import Trial, pareto_front, search
from pipeline.quant.promotion import Promoted, candidates, promoted
from pipeline.quant.recipe import Recipe
from pipeline.targets.target import Target


@dataclass(frozen=True)
class Wish:
    """What is to be reached, by which promotions, and at most at what cost: so many nodes, or
    such a share of the operations, which is then what is saved on."""

    wanted: float
    metric: Literal["cosine", "agreement"] = "cosine"
    to: Promoted = "int16"
    most_nodes: int | None = None
    most_operations: float | None = None


class Choice(NamedTuple):
    """Some promoted nodes: how good the model is with them, and their share of the operations."""

    names: tuple[str, ...]
    score: Score
    operations: float


class Found(NamedTuple):
    chosen: Choice
    front: tuple[Choice, ...]  # cheapest first, each better than all before
    suffices: bool
    trials: int


class Trials:
    """The model of one target. `made` counts the scores measured, `recalled` those that were kept.

    The nodes that it is made from must be current.
    """

    def __init__(self, build: Build, calibrated: Node, comparison: Node) -> None:
        self.made = self.recalled = 0
        self._build = build
        self._node = replace(
            comparison,
            stage="trial",
            module=judge.__name__,
            inputs={
                "optimized_float": calibrated.inputs["optimized_float"],
                "recipe": calibrated.inputs["recipe"],
                "samples": comparison.inputs["samples"],
            },
        )
        self._inputs = build.made_inputs(self._node)
        self.target: Target = built(Target, calibrated.target_document)
        self.quantization: Quantization = built(Quantization, calibrated.params["quantization"])

    @cached_property
    def graph(self) -> Graph:
        return self._loaded("optimized_float", Graph)

    def score(self, names: Collection[str], to: Promoted) -> Score:
        """With these nodes promoted, measured unless it is known. Raises PipelineError."""
        asked = promoted(self.graph, self.target, self.quantization, names, to)
        params = {**self._node.params, "quantization": digest.plain(asked)}
        document = self._build.document(replace(self._node, params=params), self._inputs)
        key, store = digest.of_document(document), self._build.memory.store
        record = store.recall(key)
        folder = self._build.memory.root
        with scratch(folder / f"trial{Score.suffix}", folder) as path:
            if record is not None and store.fetch(record.digest, path):
                self.recalled += 1
                return Score.load(path)
            found = self._judge(asked)
            found.save(path)
            made = store.put(path)
            store.remember(key, Record(document, made, path.stat().st_size))
        self.made += 1
        return found

    @cached_property
    def _judge(self) -> Callable[[Quantization], Score]:
        recipe, samples = self._loaded("recipe", Recipe), self._loaded("samples", Samples)
        if recipe.method == LOAD:
            raise ProjectError("the model brings its own scales: there is nothing to promote")
        if made_up(samples) or not samples:
            hint = "add  data: {'*': {files: ...}}"
            raise ProjectError("no samples to judge by", hint=hint)
        operators = declared(self._node.params["custom_operators"], self._build.sources(self._node))
        return judge.judge(self.graph, recipe, samples, self.target, operators)

    def _loaded(self, stage: str, kind: type) -> Any:
        found = loaded(self._build, self._node.inputs[stage], self._inputs[stage])
        assert isinstance(found, kind)
        return found


def searched(trials: Trials, wish: Wish) -> Found:
    """The promotions that reach what is wished at the least cost found, or else the best tried.

    What a node gains is measured: it alone is promoted, all else stays as the project says.
    """
    operations = candidates(trials.graph, trials.target, trials.quantization, wish.to)
    total = math.fsum(operations.values())
    scores: dict[frozenset[str], Score] = {}

    def measure(names: frozenset[str]) -> float:
        if names not in scores:
            scores[names] = trials.score(names, wish.to)
        return float(getattr(scores[names], wish.metric))

    gains = dict.fromkeys(operations, 0.0)
    if measure(frozenset()) < wish.wanted:
        for name in track(operations, "nodes", len(operations)):
            measure(frozenset({name}))
            gains[name] = scores[frozenset({name})].cosine - scores[frozenset()].cosine
    costs = dict.fromkeys(operations, 1.0)
    budget = math.inf if wish.most_nodes is None else float(wish.most_nodes)
    if wish.most_operations is not None:
        costs = {name: count / total for name, count in operations.items()}
        budget = wish.most_operations
    chosen = search(gains, costs, measure, wish.wanted, budget).chosen

    def choice(names: frozenset[str]) -> Choice:
        share = math.fsum(operations[name] for name in names) / total
        in_order = tuple(name for name in operations if name in names)
        return Choice(in_order, scores[names], round(share, 6))

    tried = (
        Trial(names, getattr(score, wish.metric), math.fsum(costs[name] for name in names))
        for names, score in scores.items()
    )
    front = tuple(choice(trial.names) for trial in pareto_front(tried))
    return Found(choice(chosen.names), front, chosen.score >= wish.wanted, len(scores))
