"""Trials: scores of a model under other types, each in the store by its key.

The key is a stage's document: code, tools, target, the types, and the digests of the float model,
the recipe and the samples. An interrupted search makes the same queries again, and finished ones
cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
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
from npumake.make.carrier import written
from npumake.make.executor import Executor
from npumake.make.job import packed
from npumake.make.maker import T, loaded
from npumake.make.node import Node, NodeKey
from npumake.make.part_jobs import PartJobs
from npumake.make.peak_memory import estimated_peak
from npumake.project.hints import hints_of
from npumake.project.reader import built
from npumake.project.sections import Quantization, Sections
from npumake.quant.precision.form import in_form
from npumake.quant.precision.int16_share import planned_share
from npumake.quant.precision.precision_candidates import Promoted, all_but, candidates, promoted
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.search import type_judge
from npumake.quant.search.methods import types_with
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.type_judge import Score
from npumake.targets.target import Target


class Task(NamedTuple):
    """The model's task: the float model's score, and the figure that counts."""

    score: Node
    figure: str


class Trials:
    """The model of one target. `measured` counts measured scores, `recalled` stored ones.

    Its input nodes must be current. The processes of an `executor` share what is independent. With
    a `task` scores have a metric, except in `scores_without`,
    which uses the cosine.
    """

    def __init__(
        self,
        build: Build,
        calibrated: Node,
        comparison: Node,
        to: Promoted,
        task: Task | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.measured = self.recalled = 0
        self._executor = executor
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
    def _recipe(self) -> Recipe:
        return self._loaded("recipe", Recipe)

    @cached_property
    def candidates(self) -> dict[str, int]:
        return candidates(self.graph, self.target, self.quantization, self.to)

    def quantization_with(self, names: Collection[str]) -> Quantization:
        """The project's quantization with these nodes promoted."""
        return promoted(self.graph, self.target, self.quantization, names, self.to)

    def int16_share(self, names: Collection[str]) -> float:
        """The share of multiply-accumulates that read int16 with these nodes promoted."""
        types = types_with(self.graph, self._recipe, self.quantization_with(names))
        return planned_share(self.graph, plan_precision(self.graph, types, self.target))

    def score(self, names: Collection[str]) -> Score:
        """The score with these nodes promoted, measured unless it is stored. Raises
        PipelineError."""
        return self._score(self.quantization_with(names), self._task)

    def scores_without(self, names: Sequence[str]) -> Iterator[Score]:
        """For each name, the score with all nodes promoted but this one; side by side with an
        executor."""
        every = [*all_but(self.graph, self.target, self.quantization, names, self.to)]
        if self._executor is None:
            yield from (self._score(types, None) for types in every)
            return
        documents = [self._document(types, None) for types in every]
        stored = [self._stored(document) for document in documents]
        open_ = [types for types, score in zip(every, stored, strict=True) if score is None]
        results = self._side_by_side(open_, self._executor)
        for document, score in zip(documents, stored, strict=True):
            if score is None:
                yield self._remembered(next(results), document)
            else:
                self.recalled += 1
                yield score

    def _side_by_side(self, every: Sequence[Quantization], executor: Executor) -> Iterator[Score]:
        """The scores, as parts of the query that this is. Without any no cluster is needed."""
        if not every:
            return
        document, carrier = self._build.document(self._node, self._inputs), executor.carrier
        job = written(packed(self._build, self._node, document, carrier), carrier)
        memory = estimated_peak(self._build, self._node)
        parts = PartJobs(job, digest.of_document(document), memory, carrier, executor)
        items = [json.dumps(digest.plain(types)).encode() for types in every]
        # Nothing is measured here unless a part comes back.
        for result in parts.map(
            type_judge.trial, items, {"type_judge": lambda types: self._judge(types)}
        ):
            yield Score(**json.loads(result))

    def _score(self, types: Quantization, task: Task | None) -> Score:
        document = self._document(types, task)
        memory = self._build.memory
        score = self._stored(document)
        if score is None:
            with memory.turn(digest.of_document(document), "a trial"):
                if (score := self._stored(document, memory.near)) is None:
                    judge = self._judge if task is None else self._judge_at_task
                    return self._remembered(judge(types), document)
        self.recalled += 1
        return score

    def _stored(self, document: NodeKey, store: Store | None = None) -> Score | None:
        """The score of a key in the store; None where it is not there."""
        memory = self._build.memory
        store = store or memory.store
        record = store.recall(digest.of_document(document))
        with scratch(memory.root / f"trial{Score.suffix}", memory.root) as path:
            if record is None or not store.fetch(record.digest, path):
                return None
            return Score.load(path)

    def _remembered(self, score: Score, document: NodeKey) -> Score:
        """The measured score, which is now in the store."""
        memory = self._build.memory
        with scratch(memory.root / f"trial{Score.suffix}", memory.root) as path:
            score.save(path)
            blob = memory.store.put(path)
            record = Record(document, blob, path.stat().st_size)
        memory.store.remember(digest.of_document(document), record)
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
        recipe, samples = self._recipe, self._loaded("samples", Samples)
        if recipe.method == LOAD:
            raise ProjectError("the model has its own scales: there is nothing to promote")
        if made_up(samples) or not samples:
            hint = "add  data: {'*': {files: ...}}"
            raise ProjectError("no samples to evaluate", hint=hint)
        operators = declared(self._node.params["custom_operators"], self._build.sources(self._node))
        return type_judge.judge(self.graph, recipe, samples, self.target, operators, measure)

    def _loaded(self, stage: str, kind: type[T]) -> T:
        return loaded(self._build, self._node.inputs[stage], self._inputs[stage], kind)
