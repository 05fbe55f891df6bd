"""One artifact run over the dataset: each file made what the model is fed, as samples are.

    file → array → transforms → fed form → session → answer → what the metric sees in it

Only what was seen is kept, so that memory does not grow with the dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pipeline.data.given import Given
from pipeline.data.given import Item as Sample
from pipeline.data.samples import Samples
from pipeline.detection.metadata import Metadata
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.errors import ProjectError, Route
from pipeline.evaluate.figures import DIGITS, Figures
from pipeline.evaluate.metrics import Answer, Metric, Setting, metric_of
from pipeline.evaluate.placed_boxes import Size
from pipeline.evaluate.truths import FILES, Item, items
from pipeline.graph import Graph
from pipeline.progress import track
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Evaluation, Files, Input
from pipeline.quant.inputs import model_inputs


class Session(Protocol):
    @property
    def output_names(self) -> tuple[str, ...]: ...

    def run(self, names: None, feeds: Feeds) -> list[np.ndarray]: ...


@dataclass(frozen=True)
class Ground:
    """What every artifact of one model is evaluated on."""

    said: Evaluation
    given: Given
    items: tuple[Item, ...]
    sources: SourceFiles
    real: Callable[[], Session]  # the float model

    def figures(self, artifact: str, session: Session, metadata: Metadata | None) -> Figures:
        """Raises PipelineError for a file, a label or a metric that does not fit."""
        setting = Setting(self.said, self.sources, self.given.how.transforms, self._size, metadata)
        metric = metric_of(setting)
        seen = track(self._seen(session, metric), artifact, len(self.items))
        found = {name: round(value, DIGITS) for name, value in metric.figures(seen).items()}
        return Figures(artifact, len(self.items), metric.name, found)

    def samples(self, most: int) -> Samples:
        """Evenly spaced pictures, at most so many, as the model is fed them."""
        chosen = self.items[:: max(1, len(self.items) // most)][:most]
        names = tuple(item.file.name for item in chosen)
        return Samples(names, lambda index: self._fed(chosen[index])[1])

    def _seen(self, session: Session, metric: Metric) -> Iterator[Any]:
        beside = self.real() if metric.needs_real else None

        def look(item: Item) -> Any:
            picture, feed = self._fed(item)
            real = None if beside is None else _named(beside, feed)
            return metric.look(Answer(_named(session, feed), real, item.truth, picture))

        return side_by_side(look, self.items, self.said.jobs)

    def _fed(self, item: Item) -> tuple[Size, Feeds]:
        """The height and width of the picture, and what it feeds."""
        one = replace(self.given, files=(item.file,))
        (sample,) = one.items()
        array = sample.array()
        size = (array.shape[0], array.shape[1]) if array.ndim == 3 else self._size
        return size, one.made(Sample(sample.name, lambda: array)).feed

    @property
    def _size(self) -> Size:
        """Height and width of the model's input; ones where it is no picture."""
        shape = self.given.input.taken.shape
        if len(shape) != 4:
            return 1, 1
        return (shape[1], shape[2]) if self._layout == "NHWC" else (shape[2], shape[3])

    @property
    def _layout(self) -> str:
        return self.given.input.said.layout


def ground(
    graph: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    said: Evaluation,
    sources: SourceFiles,
    real: Callable[[], Session],
) -> Ground:
    """The dataset as `graph`, in float, is fed it. Raises ProjectError for what cannot be fed."""
    found = model_inputs(graph, inputs)
    if len(found) != 1:
        what = f"the model has {len(found)} inputs, a dataset feeds one"
        raise ProjectError(what, Route(FILES))
    ((name, taken),) = found.items()
    how = next(iter(data.values()), Files()) if len(data) == 1 else Files()
    if how.random is not None or how.snapshot is not None:
        how = Files()
    transforms = how.transforms if said.dataset.transforms is None else said.dataset.transforms
    how = replace(how, stacked=False, transforms=transforms)
    return Ground(
        said, Given(taken, name, how, ()), items(said.dataset, sources, said.limit), sources, real
    )


def _named(session: Session, feed: Feeds) -> Mapping[str, np.ndarray]:
    return dict(zip(session.output_names, session.run(None, feed), strict=True))
