"""Finds the source of NaN and infinity: the first node that computes them from finite values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.engine.ort import Feeds
from npumake.engine.partial.opened import of_tensors
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, Node, array, is_float, origin, reads


class NonFiniteSource(NamedTuple):
    """The node, the first sample it fails on, and the `value`: "NaN" or "infinity"."""

    node: str
    op_type: str
    origin: tuple[str, ...]
    sample: str
    value: str
    infinite: str = ""  # an input that is not finite: "its own constants", "the model's inputs"

    @property
    def hint(self) -> str:
        if self.infinite:
            return "replace -infinity in a mask with a large negative number such as -1e9"
        return "it may divide by zero or take the logarithm of zero: add an epsilon"

    def __str__(self) -> str:
        trained = ", ".join(name for name in self.origin if name != self.node)
        named = f" ({trained} in the trained model)" if trained else ""
        node_text = f"{self.op_type} `{self.node}`{named}"
        message = self.infinite or "finite numbers"
        return f"{node_text} makes {self.value} of {message}, of sample {self.sample}"


def source_of_infinite(
    graph: Graph, samples: Samples, operators: Operators = NO_OPERATORS
) -> NonFiniteSource | None:
    """None if every value is finite. Raises GraphError."""
    float_values = [v for node in graph.nodes() for v in node.outputs if v.name and is_float(v)]
    part = of_tensors(graph, [str(value.name) for value in float_values], operators)
    for name, feed in zip(samples.names, samples, strict=True):
        values = part.run(feed)
        wrong = {n: _kind_of(value) for n, value in values.items() if not np.isfinite(value).all()}
        for node in graph.nodes() if wrong else ():
            tensor = next((str(v.name) for v in node.outputs if v.name in wrong), "")
            if tensor and not _is_handed_on(node, wrong):
                culprit = (str(node.name), node.op_type, origin(node))
                return NonFiniteSource(*culprit, name, wrong[tensor], _infinite(node, feed))
    return None


def source_of_nan(program: Program, feed: Feeds, operators: Operators) -> str | None:
    """The first instruction that computes NaN from values; None if none does."""
    engine = ReferenceSession(program, operators)
    values = dict(engine.checked(feed))
    for step in program.instructions:
        read = [values[name] for name in step.inputs]
        if any(_has_nan(x) for x in read):
            return None  # it was fed
        outputs = list(engine.execute(step, read))
        if any(map(_has_nan, outputs)):
            return step.name
        values.update(zip(step.outputs, outputs, strict=True))
    return None


def _has_nan(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _is_handed_on(node: Node, wrong: Mapping[str, str]) -> bool:
    return any(str(value.name) in wrong for value in reads(node))


def _infinite(node: Node, feed: Feeds) -> str:
    """Which of the node's inputs is not finite already: constants or model inputs."""
    if any(_is_infinite(array(value)) for value in reads(node)):
        return "its own constants"
    is_input = any(_is_infinite(feed.get(str(value.name))) for value in reads(node))
    return "the model's inputs" if is_input else ""


def _is_infinite(x: np.ndarray | None) -> bool:
    return x is not None and x.dtype.kind == "f" and not np.isfinite(x).all()


def _kind_of(values: np.ndarray) -> str:
    return "NaN" if np.isnan(values).any() else "infinity"
