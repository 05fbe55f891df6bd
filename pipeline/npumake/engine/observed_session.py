"""Runs a float graph and writes inner tensors into arrays that the caller owns.

onnxruntime writes them without a copy, and into memory that stays mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.float_session import MixedSession, float_session
from npumake.engine.ort import Feeds
from npumake.graph import Graph

Write = Callable[[Feeds], None]


class ObservedSession:
    """A session that outputs the float32 tensors `names`, of static shape. Raises GraphError."""

    def __init__(
        self, graph: Graph, names: Sequence[str], operators: Operators = NO_OPERATORS
    ) -> None:
        observed = graph.copy()
        observed.expose(names)
        self._session = float_session(observed, operators)

    def writer(self, arrays: Mapping[str, np.ndarray]) -> Write:
        """A function that runs the model on its feeds and writes each output into its array, for
        one thread at a time."""
        session = self._session
        if isinstance(session, MixedSession):
            return lambda feeds: _copy(session.output_names, session.run(None, feeds), arrays)
        bound = session.bound(arrays)
        inputs = [name for name in arrays if name in session.input_names]

        def write(feeds: Feeds) -> None:
            bound.run(feeds)
            for name in inputs:  # onnxruntime does not write them
                arrays[name][...] = feeds[name]

        return write


def _copy(
    names: Sequence[str], outputs: Sequence[np.ndarray], arrays: Mapping[str, np.ndarray]
) -> None:
    for name, output in zip(names, outputs, strict=True):
        arrays[name][...] = output
