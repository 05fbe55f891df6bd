"""PartJobs: a distribution over processes that take orders (npumake.make.parts)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from npumake.digest import Json
from npumake.distribution import LOCAL, Part
from npumake.errors import CacheError
from npumake.make.carrier import Blob, Carrier
from npumake.make.parts import Order, sharing
from npumake.progress import tell


class PartFuture(Protocol):
    """Dask's, or Python's own."""

    def result(self) -> Json: ...

    def cancel(self) -> Any: ...


class PartQueue(Protocol):
    """Takes orders. `part_width` is the number of processes that do. A result is
    {"blob": the blob of the part's result}."""

    @property
    def part_width(self) -> int: ...

    def submit_part(self, order: Order) -> PartFuture: ...

    def idle(self) -> AbstractContextManager[None]:
        """The block waits, so that its process may take orders."""
        ...


@dataclass(frozen=True)
class PartJobs:
    """The parts of the node of `job`, whose key is `node` and which may need `memory` bytes: a part
    has the inputs of its stage."""

    job: Blob
    node: str
    memory: int
    carrier: Carrier
    queue: PartQueue

    @property
    def width(self) -> int:
        return self.queue.part_width

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """A part that no process could make is made here, and raises its error here."""
        if len(items) < 2 or self.width < 2:
            return LOCAL.map(function, items, shared)
        return self._map(function, items, shared)

    def _map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        name = f"{function.__module__}.{function.__qualname__}"
        blobs = map(self.carrier.send_bytes, items)
        orders = [Order(self.job, self.node, name, blob, self.memory) for blob in blobs]
        reasons: set[str] = set()
        with sharing(self.node, name, shared):
            futures = [self.queue.submit_part(order) for order in orders]
            try:
                for item, future in zip(items, futures, strict=True):
                    result, reason = self._result(future)
                    if result is None:
                        result = function(item=item, **shared)
                        _tell_once(
                            f"note: no worker made a part, so it was made here: {reason}", reasons
                        )
                    yield result
            finally:
                for future in futures:
                    future.cancel()

    def _result(self, future: PartFuture) -> tuple[bytes | None, str]:
        """The bytes, or why there are none."""
        try:
            with self.queue.idle():
                blob = future.result()["blob"]
            return self.carrier.bring_bytes(Blob(**blob)), ""
        except CacheError as error:
            return None, str(error)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # whatever Dask raises
            return None, str(error) or type(error).__name__


def _tell_once(sentence: str, before: set[str]) -> None:
    if sentence not in before:
        before.add(sentence)
        tell(sentence)
