"""Part: some nodes of a graph, ready to run. Tensors go from part to part by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

Values = Mapping[str, np.ndarray]  # tensors by name
NO_VALUES: Values = MappingProxyType({})


class Runnable(Protocol):
    """A session of onnxruntime, or one that alternates with Python."""

    @property
    def input_names(self) -> tuple[str, ...]: ...

    @property
    def output_names(self) -> tuple[str, ...]: ...

    def run(self, names: Sequence[str] | None, feeds: Values) -> list[np.ndarray]: ...


class Part(NamedTuple):
    """The names of the tensors that it reads and outputs, and the function between them."""

    reads: tuple[str, ...]
    outputs: tuple[str, ...]
    compute: Callable[[Values], Values]

    def run(self, values: Values, changed: Values = NO_VALUES) -> Values:
        """The outputs for `values`; those of `changed` take precedence."""
        return self.compute({n: changed[n] if n in changed else values[n] for n in self.reads})


EMPTY = Part((), (), lambda _: NO_VALUES)  # onnxruntime refuses a model without outputs


def as_part(session: Runnable) -> Part:
    names = session.output_names

    def compute(feeds: Values) -> Values:
        return dict(zip(names, session.run(None, feeds), strict=True))

    return Part(session.input_names, names, compute)


def run_in_order(parts: Iterable[Part], values: Values) -> dict[str, np.ndarray]:
    """`values` and the outputs of all parts."""
    carried = dict(values)
    for part in parts:
        carried |= part.run(carried)
    return carried


def rerun(parts: Iterable[Part], changed: Values, values: Values) -> dict[str, np.ndarray]:
    """The changed tensors and all that changes behind them: runs the parts that read one of
    these; the others' tensors are those of `values`."""
    fresh = dict(changed)
    for part in parts:
        if not fresh.keys().isdisjoint(part.reads):
            fresh |= part.run(values, fresh)
    return fresh
