"""Runs one artifact over the dataset and scores its outputs.

    file → array → transforms → model input → session → outputs → observation of the metric

Only the metric's observations stay in memory, so it does not grow with the outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from npumake.borders.inputs import model_inputs
from npumake.custom.operators import Operators
from npumake.data.input_samples import InputSamples
from npumake.data.input_samples import SampleFile as Sample
from npumake.data.samples import Samples
from npumake.detection.metadata import Metadata
from npumake.detection.notes import metadata_of
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.errors import ProjectError, Route, StageError, did_you_mean
from npumake.evaluate.boxes_in_picture import Size
from npumake.evaluate.figures import DIGITS, Figures
from npumake.evaluate.metrics import Metric, ScoredSample, metric_of
from npumake.evaluate.setting import Setting
from npumake.evaluate.truths import FILES, LabeledFile, labeled_files
from npumake.graph import Graph
from npumake.progress import track
from npumake.project.files import SourceFiles
from npumake.project.names import entries, strangers
from npumake.project.sections import Dataset, Evaluation, Files, Input

EVERY = slice(None)


class ScoredSession(Protocol):
    @property
    def output_names(self) -> tuple[str, ...]: ...

    def run(self, names: None, feeds: Feeds) -> list[np.ndarray]: ...


class ScoredModel(NamedTuple):
    """A session of an artifact, and the metadata that describes its outputs."""

    session: ScoredSession
    metadata: Metadata | None


@dataclass(frozen=True)
class EvaluationSet:
    """The labeled files that all artifacts are evaluated on; `inputs` in the model's order."""

    evaluation: Evaluation
    inputs: tuple[InputSamples, ...]
    items: tuple[LabeledFile, ...]
    sources: SourceFiles
    operators: Operators
    real: Graph  # the float model
    class_names: tuple[str, ...] = ()  # of the labels, by class; () for numbers

    def of_graph(self, artifact: str, graph: Graph) -> Figures:
        """The figures of a graph in onnxruntime. Raises PipelineError like `figures`."""
        return self.figures(artifact, self.scored_model(graph))

    def scored_model(self, artifact: Graph | ScoredModel) -> ScoredModel:
        if not isinstance(artifact, Graph):
            return artifact
        return ScoredModel(float_session(artifact, self.operators), metadata_of(artifact))

    def figures(self, artifact: str, model: ScoredModel) -> Figures:
        """Figures of an artifact. Raises PipelineError for an unfit file, label or metric."""
        metric = self.metric(model)
        return self.summed(artifact, metric, self.observations(model, metric))

    def metric(self, model: ScoredModel) -> Metric:
        """The metric of the evaluation, for the outputs of a model. Raises ProjectError."""
        transforms = self.inputs[0].how.transforms
        setting = Setting(self.evaluation, self.sources, transforms, self._size, model.metadata)
        return metric_of(setting)

    def summed(self, artifact: str, metric: Metric, observations: Iterable[Any]) -> Figures:
        """The figures of the observations of all files."""
        observations = track(observations, artifact, len(self.items))
        by_name = {
            name: round(value, DIGITS) for name, value in metric.figures(observations).items()
        }
        return Figures(artifact, len(self.items), metric.name, by_name, self.class_names)

    def samples(self, max_samples: int) -> Samples:
        """At most `max_samples` evenly spaced files as model inputs."""
        chosen = self.items[:: max(1, len(self.items) // max_samples)][:max_samples]
        names = tuple(item.files[0].name for item in chosen)
        return Samples(names, lambda index: self._feeds(chosen[index])[1])

    def observations(
        self, model: ScoredModel, metric: Metric, stretch: slice = EVERY
    ) -> Iterator[Any]:
        """Of the files of a stretch, in order."""
        session = model.session
        beside = float_session(self.real, self.operators) if metric.needs_real else None

        def look(item: LabeledFile) -> Any:
            picture, feed = self._feeds(item)
            real = None if beside is None else _named(beside, feed)
            outputs = _named(session, feed)
            _refuse_nan(outputs, item)
            return metric.look(ScoredSample(outputs, real, item.truth, picture))

        return side_by_side(look, self.items[stretch], self.evaluation.jobs)

    def _feeds(self, item: LabeledFile) -> tuple[Size, Feeds]:
        """(height, width) of the first input's picture, and the feeds of all inputs."""
        size, feeds = self._size, dict[str, np.ndarray]()
        for number, (source, file) in enumerate(zip(self.inputs, item.files, strict=True)):
            (sample,) = replace(source, files=(file,)).items()
            array = sample.array()
            if number == 0 and array.ndim == 3:
                size = array.shape[0], array.shape[1]
            feeds |= source.prepare(Sample(sample.name, partial(np.asarray, array))).feed
        return size, feeds

    @property
    def _size(self) -> Size:
        """(height, width) of the model's first input; (1, 1) if it is not a picture."""
        first = self.inputs[0].input
        shape = first.spec.shape
        if len(shape) != 4:
            return 1, 1
        return (shape[1], shape[2]) if first.section.layout == "NHWC" else (shape[2], shape[3])


def dataset_for(
    original_float: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    operators: Operators,
) -> EvaluationSet:
    """The dataset for the float model. Raises ProjectError for files that do not fit.

    The parameters are inputs of stages, by name.
    """
    by_input = model_inputs(original_float, inputs)
    routes = _routes(evaluation.dataset, by_input)
    keys = entries(data, by_input)
    input_samples = tuple(
        InputSamples(model_input, name, _how(data.get(keys.get(name, "")), evaluation.dataset), ())
        for name, model_input in by_input.items()
    )
    labeled = labeled_files(evaluation.dataset, sources, evaluation.limit, routes)
    return EvaluationSet(
        evaluation,
        input_samples,
        labeled.items,
        sources,
        operators,
        original_float,
        labeled.class_names,
    )


def _routes(dataset: Dataset, inputs: Collection[str]) -> list[str]:
    """The route of every input's files, in the model's order. Raises ProjectError."""
    if isinstance(dataset.files, str):
        if len(inputs) == 1:
            return [FILES]
        message = f"the model has {len(inputs)} inputs, the dataset one"
        hint = "{" + ", ".join(f"{name}: ..." for name in inputs) + "}"
        raise ProjectError(message, Route(FILES), f"write  files: {hint}")
    if dataset.transforms is not None and len(inputs) > 1:
        message = "`transforms` for several inputs"
        raise ProjectError(message, Route("evaluation.dataset.transforms"), "put them under `data`")
    for name in strangers(dataset.files, inputs):
        hint = did_you_mean(name, inputs)
        raise ProjectError(f"the model has no input `{name}`", Route(f"{FILES}.{name}"), hint)
    keys = entries(dataset.files, inputs)
    for name in inputs:
        if name not in keys:
            hint = f"add  {name}: ...  to `files`"
            raise ProjectError(f"no files for input `{name}`", Route(FILES), hint)
    return [f"{FILES}.{keys[name]}" for name in inputs]


def _how(samples: Files | None, dataset: Dataset) -> Files:
    """How the files are read: like the input's samples, unless those are random or a snapshot."""
    how = samples or Files()
    if how.random is not None or how.snapshot is not None:
        how = Files()
    transforms = how.transforms if dataset.transforms is None else dataset.transforms
    return replace(how, stacked=False, transforms=transforms)


def _refuse_nan(outputs: Mapping[str, np.ndarray], item: LabeledFile) -> None:
    """Raises StageError for NaN, which has no order and passes no threshold."""
    for name, values in outputs.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise StageError(f"the model's output is NaN for {item.files[0].name}", name)


def _named(session: ScoredSession, feed: Feeds) -> Mapping[str, np.ndarray]:
    return dict(zip(session.output_names, session.run(None, feed), strict=True))
