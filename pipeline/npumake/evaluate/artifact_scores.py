"""One artifact run over the dataset: each file made what the model is fed, as samples are.

    file → array → transforms → fed form → session → answer → what the metric sees in it

Only what was seen is kept, so that memory does not grow with the dataset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from npumake.borders.inputs import model_inputs
from npumake.custom.operators import Operators, declared
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
from npumake.evaluate.metrics import Answer, Metric, metric_of
from npumake.evaluate.setting import Setting
from npumake.evaluate.truths import FILES, LabelledFile, items
from npumake.graph import Graph
from npumake.progress import track
from npumake.project.files import SourceFiles
from npumake.project.names import entries, strangers
from npumake.project.sections import CodeFiles, Dataset, Evaluation, Files, Input


class ScoredSession(Protocol):
    @property
    def output_names(self) -> tuple[str, ...]: ...

    def run(self, names: None, feeds: Feeds) -> list[np.ndarray]: ...


@dataclass(frozen=True)
class EvaluationSet:
    """What every artifact of one model is evaluated on; `given` are its inputs, in its order."""

    said: Evaluation
    given: tuple[InputSamples, ...]
    items: tuple[LabelledFile, ...]
    sources: SourceFiles
    operators: Operators
    real: Graph  # the float model

    def of_graph(self, artifact: str, graph: Graph) -> Figures:
        """Of a graph in onnxruntime. Raises PipelineError as `figures`."""
        return self.figures(artifact, float_session(graph, self.operators), metadata_of(graph))

    def figures(self, artifact: str, session: ScoredSession, metadata: Metadata | None) -> Figures:
        """Raises PipelineError for a file, a label or a metric that does not fit."""
        transforms = self.given[0].how.transforms
        setting = Setting(self.said, self.sources, transforms, self._size, metadata)
        metric = metric_of(setting)
        seen = track(self._seen(session, metric), artifact, len(self.items))
        found = {name: round(value, DIGITS) for name, value in metric.figures(seen).items()}
        return Figures(artifact, len(self.items), metric.name, found)

    def samples(self, most: int) -> Samples:
        """Evenly spaced pictures, at most so many, as the model is fed them."""
        chosen = self.items[:: max(1, len(self.items) // most)][:most]
        names = tuple(item.files[0].name for item in chosen)
        return Samples(names, lambda index: self._fed(chosen[index])[1])

    def _seen(self, session: ScoredSession, metric: Metric) -> Iterator[Any]:
        beside = float_session(self.real, self.operators) if metric.needs_real else None

        def look(item: LabelledFile) -> Any:
            picture, feed = self._fed(item)
            real = None if beside is None else _named(beside, feed)
            made = _named(session, feed)
            _refuse_nan(made, item)
            return metric.look(Answer(made, real, item.truth, picture))

        return side_by_side(look, self.items, self.said.jobs)

    def _fed(self, item: LabelledFile) -> tuple[Size, Feeds]:
        """The height and width of the first input's picture, and what all files feed."""
        size, feeds = self._size, dict[str, np.ndarray]()
        for number, (given, file) in enumerate(zip(self.given, item.files, strict=True)):
            (sample,) = replace(given, files=(file,)).items()
            array = sample.array()
            if number == 0 and array.ndim == 3:
                size = array.shape[0], array.shape[1]
            feeds |= given.prepare(Sample(sample.name, partial(np.asarray, array))).feed
        return size, feeds

    @property
    def _size(self) -> Size:
        """Height and width of the model's first input; ones where it is no picture."""
        first = self.given[0].input
        shape = first.spec.shape
        if len(shape) != 4:
            return 1, 1
        return (shape[1], shape[2]) if first.section.layout == "NHWC" else (shape[2], shape[3])


def ground(
    graph: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    said: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
) -> EvaluationSet:
    """The dataset as `graph`, in float, is fed it. Raises ProjectError for what cannot be fed."""
    found = model_inputs(graph, inputs)
    routes = _routes(said.dataset, found)
    keys = entries(data, found)
    given = tuple(
        InputSamples(taken, name, _how(data.get(keys.get(name, "")), said.dataset), ())
        for name, taken in found.items()
    )
    listed = items(said.dataset, sources, said.limit, routes)
    return EvaluationSet(said, given, listed, sources, declared(custom_operators, sources), graph)


def _routes(dataset: Dataset, inputs: Collection[str]) -> list[str]:
    """The route of every input's files, in the model's order. Raises ProjectError."""
    if isinstance(dataset.files, str):
        if len(inputs) == 1:
            return [FILES]
        what = f"the model has {len(inputs)} inputs, one is fed"
        hint = "{" + ", ".join(f"{name}: ..." for name in inputs) + "}"
        raise ProjectError(what, Route(FILES), f"write  files: {hint}")
    if dataset.transforms is not None and len(inputs) > 1:
        what = "`transforms` for several inputs"
        raise ProjectError(what, Route("evaluation.dataset.transforms"), "say them under `data`")
    for name in strangers(dataset.files, inputs):
        hint = did_you_mean(name, inputs)
        raise ProjectError(f"the model has no input `{name}`", Route(f"{FILES}.{name}"), hint)
    keys = entries(dataset.files, inputs)
    for name in inputs:
        if name not in keys:
            raise ProjectError(f"no files for input `{name}`", Route(FILES))
    return [f"{FILES}.{keys[name]}" for name in inputs]


def _how(samples: Files | None, dataset: Dataset) -> Files:
    """As the samples of the input are read; made up ones and snapshots say nothing of files."""
    how = samples or Files()
    if how.random is not None or how.snapshot is not None:
        how = Files()
    transforms = how.transforms if dataset.transforms is None else dataset.transforms
    return replace(how, stacked=False, transforms=transforms)


def _refuse_nan(made: Mapping[str, np.ndarray], item: LabelledFile) -> None:
    """Raises StageError: no order and no threshold has a place for it."""
    for name, values in made.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise StageError(f"the model answers NaN to {item.files[0].name}", name)


def _named(session: ScoredSession, feed: Feeds) -> Mapping[str, np.ndarray]:
    return dict(zip(session.output_names, session.run(None, feed), strict=True))
