"""ComparedModels: the float, the calibrated and the quantized model, run side by side.

The result is one TensorSums for each compared tensor and sample. Sums of floats depend on their
order, so samples that other processes run are added in the order of one process.

Memory is that of the compared tensors of the samples that run at once: as many as
MAX_COMPARED_BYTES holds, at least one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Program, Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.finite import source_of_nan
from npumake.debug.twins import View, nodes_with_twins, views_of
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import FloatSession, float_session
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side, threads
from npumake.errors import GraphError, StageError
from npumake.graph import Graph, Node
from npumake.kernels import affine
from npumake.kernels.measure import Agreement, agreements
from npumake.quant.precision.form import in_form
from npumake.targets.target import Target

MAX_COMPARED_BYTES = 1 << 28  # over all threads


class TensorSums(NamedTuple):
    """One tensor: float against calibrated, float against quantized."""

    calibrated: Agreement = Agreement()
    quantized: Agreement = Agreement()

    def plus(self, other: TensorSums) -> TensorSums:
        return TensorSums(self.calibrated + other.calibrated, self.quantized + other.quantized)


class _Engines(NamedTuple):
    """The float model, the float model with Q/DQ, and the integer engine; the first two have the
    compared tensors as outputs."""

    real: FloatSession
    fake: FloatSession
    exact: ExactSession


@dataclass(frozen=True)
class ComparedModels:
    """`real` is the float model, in any form."""

    real: Graph
    calibrated: Graph
    quantized: Graph
    target: Target
    operators: Operators = NO_OPERATORS

    @cached_property
    def optimized_float(self) -> Graph:
        return in_form(self.real, self.target)

    @cached_property
    def program(self) -> Program:
        return lowered(self.quantized, self.target.rounding, self.target.runnable)

    @cached_property
    def nodes(self) -> Sequence[Node]:
        return nodes_with_twins(self.optimized_float, self.calibrated)

    @cached_property
    def views(self) -> Mapping[str, View]:
        """By tensor of the float model."""
        return views_of(self.optimized_float, self.calibrated, self.nodes, self.program)

    def sums(self, feeds: Iterable[Feeds]) -> Iterator[Sequence[TensorSums]]:
        """For each feed the sums of each tensor, in the order of `views`. Raises GraphError, and
        StageError if quantization produces NaN."""
        real, fake, exact = self._engines
        codes = [view.program for view in self.views.values()]
        grids = [exact.program.tensors[code] for code in codes]

        def compared(feed: Feeds) -> list[TensorSums]:
            runs = real.run(None, feed), fake.run(None, feed), _run(exact, codes, feed)
            outputs = zip(*runs, strict=True)
            with NUMPY:
                return [
                    TensorSums(*agreements(a, (real_numbers(b, grid), real_numbers(c, grid))))
                    for (a, b, c), grid in zip(outputs, grids, strict=True)
                ]

        return side_by_side(compared, feeds, samples_at_once(grids))

    @cached_property
    def _engines(self) -> _Engines:
        views = self.views.values()
        return _Engines(
            _watching(self.optimized_float, list(self.views), self.operators),
            _watching(self.calibrated, [view.calibrated for view in views], self.operators),
            ExactSession(self.program, self.operators, 1, [view.program for view in views]),
        )


def samples_at_once(tensors: Iterable[Tensor]) -> int:
    """How many samples run in parallel; each tensor is there twice as float32, and as codes."""
    elements = sum(math.prod(tensor.shape) for tensor in tensors)
    return max(1, min(threads(), MAX_COMPARED_BYTES // (9 * max(elements, 1))))


def _run(exact: ExactSession, names: list[str], feed: Feeds) -> list[np.ndarray]:
    """Raises StageError naming the node that produces NaN in the integer engine."""
    try:
        return exact.run(names, feed)
    except GraphError as error:
        node = source_of_nan(exact.program, feed, exact.operators)
        if node is None:
            raise
        raise not_a_number(node) from error


def not_a_number(node: str) -> StageError:
    hint = "rounding moves its input out of its domain: add a Clip in front of it in the model"
    return StageError("it produces NaN when quantized, but not in float", node, hint)


def _watching(graph: Graph, names: list[str], operators: Operators) -> FloatSession:
    watched = graph.copy()
    watched.expose(names)
    return float_session(watched, operators)


def real_numbers(values: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Dequantize values on the grid of `tensor`; floats are returned as they are."""
    if tensor.scale is None or values.dtype.kind == "f":
        return values
    return affine.dequantize(values, np.float32(tensor.scale), tensor.zero_point)
