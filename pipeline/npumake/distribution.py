"""Distribution: many calls of one function, one for each item, wherever a build computes.

    def trial(evaluator: Evaluator, item: bytes) -> bytes: ...

    results = distributed(trial, items, evaluator=evaluator)

A stage calls it and does not see where the calls run. The function is pure, so that the place
changes no byte: equal items give equal results, which come in the order of the items. Items and
results are bytes, because they may travel. The other parameters are named like inputs of a stage: a
process that has these inputs computes them itself. `PARTS` of npumake.stages lists the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

Part = Callable[..., bytes]  # its keyword `item` is one of many, the others are `shared`


class Distributor(Protocol):
    """`width` is the number of calls that run at a time."""

    @property
    def width(self) -> int: ...

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """Raises what the function raises for the first item that fails."""
        ...


class LocalDistributor:
    """One call after another, in the calling thread, each when its result is asked for."""

    width = 1

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        return (function(item=item, **shared) for item in items)


class ThreadDistributor:
    """`width` threads of this process, for functions that leave the interpreter's lock."""

    def __init__(self, width: int) -> None:
        self.width = width

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        with ThreadPoolExecutor(self.width) as threads:
            yield from threads.map(lambda item: partial(function, **shared)(item=item), items)


LOCAL = LocalDistributor()
_distributor: ContextVar[Distributor] = ContextVar("distributor", default=LOCAL)


@contextmanager
def distributing(distributor: Distributor) -> Iterator[None]:
    """Every `distributed` inside the block, in this thread, uses `distributor`."""
    token = _distributor.set(distributor)
    try:
        yield
    finally:
        _distributor.reset(token)


def distributed(function: Part, items: Sequence[bytes], **shared: Any) -> Iterator[bytes]:
    """function(item=item, **shared) for each item, in order."""
    return _distributor.get().map(function, items, shared)


def width() -> int:
    """How many calls run at a time, for a caller that decides how to split its work. No result
    may depend on it."""
    return _distributor.get().width
