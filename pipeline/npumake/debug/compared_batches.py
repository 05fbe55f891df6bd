"""Batches of compared samples, which any process may run (npumake.distribution).

The sums of each sample travel as float64: (samples, tensors, 2, fields of Agreement).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields, replace
from itertools import pairwise

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.debug.compared_models import ComparedModels, TensorSums
from npumake.distribution import distributed, width
from npumake.kernels.measure import Agreement
from npumake.progress import track
from npumake.quant.search.model_graphs import ModelGraphs
from npumake.targets.target import Target

MIN_BATCH = 16  # samples; fewer are compared while another process opens its engines
FIELDS = len(fields(Agreement))


def compared_models(
    graphs: ModelGraphs, target: Target, operators: Operators = NO_OPERATORS
) -> ComparedModels:
    """The parameters are inputs of stages, by name."""
    return ComparedModels(graphs.real, graphs.calibrated, graphs.quantized, target, operators)


def sums_of_batches(
    compared_models: ComparedModels, samples: Samples, numbers: Sequence[int]
) -> Iterator[Sequence[TensorSums]]:
    """The sums of the samples of these numbers, in order. Raises as ComparedModels.sums."""
    count = min(width(), len(numbers) // MIN_BATCH)
    if count < 2:
        feeds = track(samples.subset(numbers), "comparison", len(numbers))
        return compared_models.sums(feeds)
    bounds = [len(numbers) * place // count for place in range(count + 1)]
    items = [json.dumps(numbers[start:stop]).encode() for start, stop in pairwise(bounds)]
    batches = distributed(compared_batch, items, compared_models=compared_models, samples=samples)
    return track(_rows(batches, len(compared_models.views)), "comparison", len(numbers))


def compared_batch(compared_models: ComparedModels, samples: Samples, item: bytes) -> bytes:
    """The sums of the samples of one batch."""
    rows = compared_models.sums(samples.subset(json.loads(item)))
    return np.array([[[*map(astuple, sums)] for sums in row] for row in rows], "<f8").tobytes()


def _rows(batches: Iterator[bytes], tensors: int) -> Iterator[list[TensorSums]]:
    for data in batches:
        for row in np.frombuffer(data, "<f8").reshape(-1, tensors, 2, FIELDS):
            yield [TensorSums(*map(_agreement, pair)) for pair in row]


def _agreement(values: np.ndarray) -> Agreement:
    sums = Agreement(*values.tolist())
    return replace(sums, count=int(sums.count))
