"""Batches: the labelled files in stretches that any process may score (npumake.distribution).

Observations travel as JSON, arrays in base64. Those of a project's own metric are whole outputs and
stay where they are.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from npumake import digest
from npumake.digest import Json
from npumake.distribution import distributed, width
from npumake.evaluate.artifact_scores import EvaluationSet, ScoredModel
from npumake.evaluate.average_precision import Matches
from npumake.evaluate.figures import Figures
from npumake.graph import Graph
from npumake.kernels.measure import Agreement

MIN_BATCH = 32  # files; fewer are scored while another process opens its session


def figures_of_batches(
    artifact: Graph | ScoredModel, artifact_name: str, dataset: EvaluationSet
) -> Figures:
    """The figures of an artifact. Raises PipelineError like EvaluationSet.figures."""
    model = dataset.scored_model(artifact)
    metric = dataset.metric(model)
    count = min(width(), len(dataset.items) // MIN_BATCH)
    if count < 2 or not metric.travels:
        return dataset.figures(artifact_name, model)
    bounds = [len(dataset.items) * number // count for number in range(count + 1)]
    items = [json.dumps(pair).encode() for pair in pairwise(bounds)]
    batches = distributed(batch, items, artifact=artifact, dataset=dataset)
    return dataset.summed(artifact_name, metric, _observations(batches))


def batch(artifact: Graph | ScoredModel, dataset: EvaluationSet, item: bytes) -> bytes:
    """The observations of the files from start to stop, as JSON."""
    start, stop = json.loads(item)
    model = dataset.scored_model(artifact)
    observations = dataset.observations(model, dataset.metric(model), slice(start, stop))
    return json.dumps([encoded(observation) for observation in observations]).encode()


def _observations(batches: Iterator[bytes]) -> Iterator[Any]:
    for data in batches:
        yield from map(decoded, json.loads(data))


def encoded(value: Any) -> Json:
    """An observation of any metric but a project's own: numbers, sums, and matches by class."""
    if isinstance(value, Agreement):
        return {"agreement": digest.plain(value)}
    if isinstance(value, Matches):
        return {"matches": [encoded(part) for part in value]}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [str(value.dtype), list(value.shape), data]}
    if isinstance(value, dict):
        return {"classes": [[label, encoded(entry)] for label, entry in value.items()]}
    if isinstance(value, list):
        return [encoded(entry) for entry in value]
    return int(value)


def decoded(document: Json) -> Any:
    """The observation that `encoded` wrote."""
    if isinstance(document, list):
        return [decoded(entry) for entry in document]
    if isinstance(document, int):
        return document
    ((kind, content),) = document.items()
    return READERS[kind](content)


def _array(content: Json) -> np.ndarray:
    dtype, shape, data = content
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


READERS: Mapping[str, Callable[[Json], Any]] = {
    "agreement": lambda content: Agreement(**content),
    "array": _array,
    "classes": lambda content: {label: decoded(entry) for label, entry in content},
    "matches": lambda content: Matches(*map(decoded, content)),
}
