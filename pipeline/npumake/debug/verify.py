"""Verifies a bundle against its quantized graph: constants and outputs.

The graph runs in the reference engine, which rounds like the bundle, so any difference is a change.
Outputs agree if they are equal to a number of decimals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import joined
from npumake.errors import GraphError
from npumake.graph import Graph
from npumake.targets.target import Target


@dataclass(frozen=True)
class Mismatch:
    """Counts of an output's values: missing on one side, different, and NaN, of `total`."""

    output: str
    miss: int
    diff: int
    nan: int
    total: int

    @property
    def lines(self) -> int:
        return self.miss + self.diff + self.nan

    @property
    def rate(self) -> float:
        return self.lines / self.total if self.total else 0.0


def program_of(quantized: Graph, target: Target) -> Program:
    """The program of a quantized graph, as a bundle stores it."""
    return joined(lowered(quantized, target.rounding, target.runnable))


def verified(
    program: Program,
    bundle: Bundle,
    feeds: Feeds,
    digits: int,
    operators: Operators = NO_OPERATORS,
) -> list[Mismatch]:
    """Compare every output of the program with the bundle's, to `digits` decimals. Raises
    GraphError for different inputs and for feeds that do not fit."""
    if program.inputs != bundle.program.inputs:
        inputs = list(program.inputs), list(bundle.program.inputs)
        message = "the graph has the inputs {}, the bundle {}".format(*inputs)
        raise GraphError(message, hint="check that the bundle was built from this graph")
    expected = ReferenceSession(program, operators).run(None, feeds)
    actual = ExactSession(bundle.program, operators).run(None, feeds)
    bundle_outputs = dict(zip(bundle.program.outputs, actual, strict=True))
    return [
        mismatch(name, values, bundle_outputs.get(name, np.empty(0)), digits)
        for name, values in zip(program.outputs, expected, strict=True)
    ]


def mismatch(name: str, expected: np.ndarray, actual: np.ndarray, digits: int) -> Mismatch:
    """Compare element by element, to `digits` decimals."""
    a, b = (values.astype(np.float64).ravel() for values in (expected, actual))
    shared = min(a.size, b.size)
    nan = np.isnan(a[:shared]) | np.isnan(b[:shared])
    apart = (np.round(a[:shared], digits) != np.round(b[:shared], digits)) & ~nan
    return Mismatch(
        name, abs(a.size - b.size), int(apart.sum()), int(nan.sum()), max(a.size, b.size)
    )


def changed_constants(program: Program, bundle: Bundle) -> Iterator[str]:
    """A line for every instruction or constant that differs in the bundle."""
    bundle_steps = {step.name: step for step in bundle.program.instructions}
    for step in program.instructions:
        other = bundle_steps.get(step.name)
        if other is None or other.op != step.op or other.attributes != step.attributes:
            yield f"{step.name}: another instruction"
            continue
        for role, values in step.constants.items():
            actual = other.constants.get(role)
            if actual is None or actual.shape != values.shape or actual.dtype != values.dtype:
                yield f"{step.name}: another {role}"
            elif count := int((actual != values).sum()):
                yield f"{step.name}: {count} of {values.size} values of {role}"
