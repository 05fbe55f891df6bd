"""Statistics: what each tensor did over all samples, in one pass and bounded memory.

onnxruntime runs the float graph; every observed tensor is reduced to a histogram as it comes, and
histograms merge exactly (pipeline.kernels.histogram). Memory is O(tensors * bins), and neither the
order of the samples nor the number of threads changes a byte.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.mixed import float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.errors import CacheError, StageError
from pipeline.graph import Graph
from pipeline.kernels.histogram import BINS, Histogram, histogram, merged
from pipeline.quant.placement import observed


@dataclass(frozen=True)
class Statistics:
    """A histogram per tensor of the float graph."""

    tensors: Mapping[str, Histogram]

    suffix: ClassVar[str] = ".npz"

    def save(self, path: Path) -> None:
        """Arrays by tensor: names, exponents, low, high, count and counts (tensors, 2, bins)."""
        found = list(self.tensors.values())
        columns = {
            "tensor": np.array(list(self.tensors)),
            "exponent": np.array([h.exponent for h in found], np.int32),
            "low": np.array([h.low for h in found], np.float32),
            "high": np.array([h.high for h in found], np.float32),
            "count": np.array([h.count for h in found], np.int64),
            "counts": np.array([h.counts for h in found], np.int64).reshape(-1, 2, BINS),
        }
        with path.open("wb") as file:
            np.savez(file, **columns)  # type: ignore[arg-type]  # the stubs miss **arrays

    @classmethod
    def load(cls, path: Path) -> Statistics:
        """Raises CacheError for a file that `save` did not write."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                columns = {name: arrays[name] for name in arrays.files}
            rows = zip(
                *(
                    columns[name]
                    for name in ("tensor", "exponent", "counts", "low", "high", "count")
                ),
                strict=True,
            )
            return cls(
                {
                    str(name): Histogram(int(exponent), counts, float(low), float(high), int(count))
                    for name, exponent, counts, low, high, count in rows
                }
            )
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise CacheError(f"not a statistics file: {error}", str(path)) from error


def observe(
    graph: Graph, feeds: Iterable[Feeds], operators: Operators = NO_OPERATORS
) -> Statistics:
    """The statistics of every observed tensor of `graph` over `feeds`, each fed once.

    Raises StageError when the model makes NaN or infinity, which no range can hold.
    """
    names = observed(graph)
    watched = graph.copy()
    watched.expose(names)
    session = float_session(watched, operators)

    def measured(feed: Feeds) -> list[Histogram]:
        made = session.run(None, feed)
        return [_finite(values, name) for name, values in zip(names, made, strict=True)]

    found: dict[str, Histogram] = {}
    for parts in side_by_side(measured, feeds if names else ()):
        for name, part in zip(names, parts, strict=True):
            found[name] = merged(found[name], part) if name in found else part
    return Statistics(found)


def _finite(values: np.ndarray, name: str) -> Histogram:
    try:
        return histogram(values)
    except ValueError as error:
        raise StageError(f"the float model gives no finite number: {error}", name) from error
