"""Trials: scores of a model under other types, each in the store by its key.

The key is a stage's document: code, tools, target, the types, and the digests of the float model,
the recipe and the samples. An interrupted search makes the same queries again, and finished ones
cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from npumake import digest
from npumake.cache.publish import scratch
from npumake.cache.store import Record, Store
from npumake.custom.operators import declared
from npumake.data.samples import Samples, made_up
from npumake.errors import ProjectError
from npumake.evaluate import gate_trials
from npumake.evaluate.artifact_scores import dataset_for
from npumake.evaluate.gate_trials import at_task
from npumake.graph import Graph
from npumake.make.build import Build
from npumake.make.maker import T, loaded
from npumake.make.node import Node, NodeKey
from npumake.project.hints import hints_of
from npumake.project.reader import built
from npumake.project.sections import Quantization, Sections
from npumake.quant.precision.form import in_form
from npumake.quant.precision.precision_candidates import Promoted, all_but, candidates, promoted
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.search import type_judge
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.type_judge import Score
from npumake.targets.target import Target


class Task(NamedTuple):
    """The model's task: the float model's score, and the figure that counts."""

    score: Node
    figure: str


class Trials:
    """The model of one target. `measured` counts measured scores, `recalled` stored ones.

    Its input nodes must be current. With a `task` scores have a metric, except in `score_without`,
    which uses the cosine.
    """

    def __init__(
        self,
        build: Build,
        calibrated: Node,
        comparison: Node,
        to: Promoted,
        task: Task | None = None,
    ) -> None:
        self.measured = self.recalled = 0
        self.to = to
        self._build = build
        self._task = task
        self._node = replace(
            comparison,
            stage="trial",
            modules=(type_judge.__name__,),
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
        return in_form(self._loaded("optimized_float", Graph), self.target)

    @cached_property
    def candidates(self) -> dict[str, int]:
        return candidates(self.graph, self.target, self.quantization, self.to)

    def quantization_with(self, names: Collection[str]) -> Quantization:
        """The project's quantization with these nodes promoted."""
        return promoted(self.graph, self.target, self.quantization, names, self.to)

    def score(self, names: Collection[str]) -> Score:
        """The score with these nodes promoted, measured unless it is stored. Raises
        PipelineError."""
        return self._score(self.quantization_with(names), self._task)

    def score_without(self, name: str) -> Score:
        """The score with all nodes promoted but this one."""
        types = all_but(self.graph, self.target, self.quantization, name, self.to)
        return self._score(types, None)

    def _score(self, types: Quantization, task: Task | None) -> Score:
        document = self._document(types, task)
        key, memory = digest.of_document(document), self._build.memory
        with scratch(memory.root / f"trial{Score.suffix}", memory.root) as path:
            if not _recalled(memory.store, key, path):
                with memory.turn(key, "a trial"):
                    if not _recalled(memory.near, key, path):
                        return self._measured(types, task, document, path)
            self.recalled += 1
            return Score.load(path)

    def _measured(
        self, types: Quantization, task: Task | None, document: NodeKey, path: Path
    ) -> Score:
        """The score, which is stored by way of `path`."""
        store = self._build.memory.store
        score = (self._judge if task is None else self._judge_at_task)(types)
        score.save(path)
        blob = store.put(path)
        store.remember(digest.of_document(document), Record(document, blob, path.stat().st_size))
        self.measured += 1
        return score

    def _document(self, types: Quantization, task: Task | None) -> NodeKey:
        node, inputs = self._node, self._inputs
        params = {**node.params, "quantization": digest.plain(types)}
        if task is not None:
            params = {**task.score.params, **params, "figure": task.figure}
            sources = tuple(dict.fromkeys((*node.sources, *task.score.sources)))
            node = replace(node, modules=(gate_trials.__name__,), sources=sources)
            inputs = {**inputs, **self._build.made_inputs(task.score)}
        return self._build.document(replace(node, params=params), inputs)

    @cached_property
    def _judge_at_task(self) -> Callable[[Quantization], Score]:
        assert self._task is not None
        score = self._task.score
        inputs = self._build.made_inputs(score)
        sources = self._build.sources(score)
        graph = loaded(self._build, score.inputs["original_float"], inputs["original_float"], Graph)
        hints = hints_of(Sections)
        sections = {name: built(hints[name], value) for name, value in score.params.items()}
        feeding = sections["inputs"], sections["data"]
        operators = declared(sections["custom_operators"], sources)
        dataset = dataset_for(graph, *feeding, sections["evaluation"], sources, operators)
        return self._judging(at_task(dataset, self._task.figure))

    @cached_property
    def _judge(self) -> Callable[[Quantization], Score]:
        return self._judging(None)

    def _judging(self, measure: Callable[[Graph], float] | None) -> Callable[[Quantization], Score]:
        recipe, samples = self._loaded("recipe", Recipe), self._loaded("samples", Samples)
        if recipe.method == LOAD:
            raise ProjectError("the model has its own scales: there is nothing to promote")
        if made_up(samples) or not samples:
            hint = "add  data: {'*': {files: ...}}"
            raise ProjectError("no samples to evaluate", hint=hint)
        operators = declared(self._node.params["custom_operators"], self._build.sources(self._node))
        return type_judge.judge(self.graph, recipe, samples, self.target, operators, measure)

    def _loaded(self, stage: str, kind: type[T]) -> T:
        return loaded(self._build, self._node.inputs[stage], self._inputs[stage], kind)


def _recalled(store: Store, key: str, path: Path) -> bool:
    """Whether `path` now holds the stored score of a key."""
    record = store.recall(key)
    return record is not None and store.fetch(record.digest, path)
