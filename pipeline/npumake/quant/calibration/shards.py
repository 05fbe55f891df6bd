"""Shards: the calibration samples in stretches that any process may observe (npumake.distribution).

Their statistics merge to the bytes of one process. What follows from them is derived once, behind
the merge: the middle of a bin depends on all samples.
"""

from __future__ import annotations

import json
from functools import reduce
from itertools import pairwise

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.distribution import distributed, width
from npumake.graph import Graph
from npumake.lifetime.temporaries import temporary_folder
from npumake.quant.calibration.observe import complete, observe, observe_mergeable
from npumake.quant.calibration.statistics import Statistics, merged_statistics

MIN_SHARD_SAMPLES = 16  # fewer are observed while another process opens its session


def observe_shards(
    graph: Graph, samples: Samples, operators: Operators = NO_OPERATORS
) -> Statistics:
    """The statistics of every observed tensor. Raises StageError as `observe`."""
    count = min(width(), len(samples) // MIN_SHARD_SAMPLES)
    if count < 2:
        return observe(graph, samples, operators)
    bounds = [len(samples) * number // count for number in range(count + 1)]
    items = [json.dumps(pair).encode() for pair in pairwise(bounds)]
    shards = distributed(shard, items, optimized_float=graph, samples=samples, operators=operators)
    return complete(graph, reduce(merged_statistics, map(_read, shards)))


def shard(
    optimized_float: Graph, samples: Samples, item: bytes, operators: Operators = NO_OPERATORS
) -> bytes:
    """The mergeable statistics of the samples from start to stop, as a file."""
    start, stop = json.loads(item)
    stretch = Samples(samples.names[start:stop], lambda index: samples.read(start + index))
    statistics = observe_mergeable(optimized_float, stretch, operators, first=start)
    with temporary_folder() as folder:
        path = folder / f"shard{Statistics.suffix}"
        statistics.save(path)
        return path.read_bytes()


def _read(data: bytes) -> Statistics:
    with temporary_folder() as folder:
        path = folder / f"shard{Statistics.suffix}"
        path.write_bytes(data)
        return Statistics.load(path)
